"""What the store holds, and what of it the present code would still use."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import pandas as pd

from nbutils.data.catalogue import available
from nbutils.data.datasets import load_dataset
from nbutils.runs.run import run_address
from nbutils.runs.spec import RunSpec, known_dataset
from nbutils.study.extras import extra_code
from nbutils.study.measure_run import measure_code
from nbutils.support.code import notebook_code
from nbutils.support.provenance import differences
from nbutils.support.store import Store
from nbutils.sweeps.parameters import listed

OF_SPEC = ("dataset", "labels", "seed", "model", "epochs")


def inventory(dataset: str | None = None) -> pd.DataFrame:
    """All runs in the store.

    Args:
        dataset: only runs on this data set; None means all.

    Returns:
        One row per run: `run` (address), `dataset`, `labels`, `seed`, `model`, `epochs`, `test accuracy` at the end,
        `status` ("done", "failed", "other versions" where only the libraries differ from those that are installed,
        "no data" where its images are not there or cannot be read, so that nobody can tell, or "outdated" when today's
        code would train it again in any case), `versions` (in what the libraries differ),
        `seconds`, `commit`, `MiB`.

    Raises:
        ValueError: there is no such data set, and no run on it.

    Examples:
        >>> inventory().columns[0]
        'run'
    """
    store, rows = Store("runs"), []
    found = {address: record for address in store.addresses() if (record := store.read(address)) is not None}
    if dataset is not None and dataset not in (there := [record["spec"]["dataset"] for record in found.values()]):
        try:
            dataset = known_dataset(dataset)  # that of a folder, with its whole path
        except ValueError as error:
            raise ValueError(f"{error}; the store has runs on {listed(there)}") from None
    for address, record in found.items():
        if dataset is not None and record["spec"]["dataset"] != dataset:
            continue
        spec, history, changes = record["spec"], record["history"], differences(record["environment"])
        rows.append(
            {
                "run": address,
                **{name: spec[name] for name in OF_SPEC},
                "test accuracy": round(history[-1]["test_accuracy"], 3) if history else float("nan"),
                "status": _status(address, record),
                "versions": ", ".join(f"{name} {old}" for name, (old, _) in changes.items()),
                "seconds": record["seconds"],
                "commit": record["provenance"]["commit"],
                "MiB": round(sum(record["files"].values()) / 2**20, 2),
            }
        )
    columns = ["run", *OF_SPEC, "test accuracy", "status", "versions", "seconds", "commit", "MiB"]
    return pd.DataFrame(rows, columns=columns).sort_values(["dataset", "labels", "seed"], ignore_index=True)


def prune() -> tuple[int, int]:
    """Remove what would not be used here any more: that of other code or other versions, and unfinished left-overs.

    What belongs to images that are away, as on a disk that is not mounted, stays.

    Returns:
        (number of folders removed, bytes freed).
    """
    runs = inventory()
    current = set(runs.loc[runs["status"].isin(("done", "failed", "no data")), "run"])

    def of_today(record: dict[str, Any], code: str) -> bool:
        return record["code"] == code and not differences(record["environment"])

    def notebook_of_today(address: str, record: dict[str, Any]) -> bool:
        try:
            (notebook,) = Store("notebooks").path(address).glob("*.ipynb")
            return of_today(record, notebook_code(notebook.read_text("utf-8")))
        except (OSError, ValueError):
            return False

    used: dict[str, Callable[[str, dict[str, Any]], bool]] = {
        "measures": lambda _, record: record["run"] in current and of_today(record, measure_code()),
        "extras": lambda _, record: record["run"] in current and of_today(record, extra_code(record["extra"])),
        "notebooks": notebook_of_today,
    }
    doomed = [Store("runs").path(address) for address in Store("runs").addresses() if address not in current]
    for kind, is_used in used.items():
        store = Store(kind)
        records = {address: store.read(address) for address in store.addresses()}
        doomed += [
            store.path(address) for address, record in records.items() if not record or not is_used(address, record)
        ]
    for kind in ("runs", *used):
        doomed += Store(kind).unfinished()
    size = sum(file.stat().st_size for path in doomed for file in path.rglob("*") if file.is_file())
    for path in doomed:
        shutil.rmtree(path, ignore_errors=True)
    return len(doomed), size


def _is_away(spec: dict[str, Any]) -> bool:
    """Whether images that a run was trained on are not there or cannot be read; nothing is downloaded."""
    try:
        for name in filter(None, (spec["dataset"], spec.get("start_from"))):
            if not available(name):
                return True
            load_dataset(name)
    except (OSError, ValueError):
        return True
    return False


def _status(address: str, record: dict[str, Any]) -> str:
    try:
        spec = RunSpec(**record["spec"])
    except (ValueError, ModuleNotFoundError):
        return "no data" if _is_away(record["spec"]) else "outdated"
    if _is_away(record["spec"]):
        return "no data"
    if run_address(spec, record["environment"]) != address:
        return "outdated"
    if differences(record["environment"]):
        return "other versions"
    return "failed" if record["reason"] else "done"
