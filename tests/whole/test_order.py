"""The order in which tests run on several workers, and that random numbers do not depend on it."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
import torch


class Item:
    """As much of a test as the order depends on."""

    def __init__(self, nodeid: str, seconds: float | None = None) -> None:
        self.nodeid, self.mark = nodeid, None if seconds is None else pytest.mark.slow(seconds).mark

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return self.mark if name == "slow" else None


@pytest.fixture
def order(root):
    spec = importlib.util.spec_from_file_location("order", root / "conftest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda items, workers: [item.nodeid for item in module.slowest_first(items, workers)]


def test_each_worker_begins_with_slow_files_and_has_as_many_tests(order):
    quick = [Item(f"q::{number}") for number in range(6)]
    slow = [Item("a::1", 1), Item("b::1", 9), Item("a::2", 1), Item("c::1", 6), Item("d::1", 2)]
    found = order([*quick[:3], *slow, *quick[3:]], 2)
    assert found == ["b::1", *(f"q::{n}" for n in range(4)), "c::1", "a::1", "a::2", "d::1", "q::4", "q::5"]
    assert order(quick, 2) == [item.nodeid for item in quick]
    assert order([*quick, *slow], 1)[:5] == ["b::1", "c::1", "a::1", "a::2", "d::1"]


def test_no_test_is_lost_where_one_worker_has_slow_ones_only(order):
    items = [Item("q::1"), *(Item(f"a::{number}", 1) for number in range(6))]
    assert sorted(order(items, 3)) == sorted(item.nodeid for item in items)


@pytest.mark.parametrize("turn", ["first", "second"])
def test_every_test_begins_with_the_same_random_numbers(turn):
    drawn = [*torch.rand(3).tolist(), *np.random.rand(3)]
    torch.manual_seed(0)
    np.random.seed(0)
    assert drawn == [*torch.rand(3).tolist(), *np.random.rand(3)], turn
