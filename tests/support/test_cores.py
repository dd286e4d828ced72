from __future__ import annotations

import os

import pytest

from nbutils.support.machine import default_jobs, threads_each, usable_cores


def test_one_job_per_core_unless_told_a_share(monkeypatch):
    monkeypatch.delenv("NBUTILS_JOBS", raising=False)
    assert default_jobs() == usable_cores() <= (os.cpu_count() or 1)
    monkeypatch.setenv("NBUTILS_JOBS", "3")
    assert default_jobs() == 3
    for nonsense in ("0", "-1", "many", ""):
        monkeypatch.setenv("NBUTILS_JOBS", nonsense)
        assert default_jobs() == usable_cores()


@pytest.mark.parametrize(("cores", "jobs", "threads"), [(2, 2, 1), (2, 1, 2), (8, 3, 2), (4, 9, 1)])
def test_jobs_times_threads_never_exceed_the_cores(monkeypatch, cores, jobs, threads):
    monkeypatch.setenv("NBUTILS_JOBS", str(cores))
    assert threads_each(jobs) == threads
