"""What the store holds, and what of it the present code would still use."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
from pydantic import ValidationError

from nbutils.executions import notebook_code
from nbutils.extras import extra_code
from nbutils.measures import measure_code
from nbutils.runs import run_address
from nbutils.specs import RunSpec
from nbutils.store import Store

__all__ = ["inventory", "prune"]


def inventory(dataset: str | None = None) -> pd.DataFrame:
    """All runs in the store.

    Args:
        dataset: only runs on this data set; None means all.

    Returns:
        One row per run: `run` (address), `dataset`, `labels`, `seed`, `model`, `epochs`, `test accuracy` at the end,
        `status` ("done", "failed", or "outdated" when today's code would train it again), `seconds`, `commit`, `MiB`.

    Examples:
        >>> inventory().columns[0]
        'run'
    """
    store, rows = Store("runs"), []
    for address in store.addresses():
        record = store.read(address)
        if record is None or (dataset and record["spec"]["dataset"] != dataset):
            continue
        spec, history = record["spec"], record["history"]
        rows.append(
            {
                "run": address,
                **{name: spec[name] for name in ("dataset", "labels", "seed", "model", "epochs")},
                "test accuracy": round(history[-1]["test_accuracy"], 3) if history else float("nan"),
                "status": _status(address, record),
                "seconds": record["seconds"],
                "commit": record["provenance"]["commit"],
                "MiB": round(sum(record["files"].values()) / 2**20, 2),
            }
        )
    columns = [
        "run",
        "dataset",
        "labels",
        "seed",
        "model",
        "epochs",
        "test accuracy",
        "status",
        "seconds",
        "commit",
        "MiB",
    ]
    return pd.DataFrame(rows, columns=columns).sort_values(["dataset", "labels", "seed"], ignore_index=True)


def prune() -> tuple[int, int]:
    """Remove what the present code would not use: outdated runs, measures, extras, notebooks, unfinished left-overs.

    Returns:
        (number of folders removed, bytes freed).
    """
    runs, measures, notebooks = Store("runs"), Store("measures"), Store("notebooks")
    doomed = [runs.path(row.run) for row in inventory().itertuples() if row.status == "outdated"]
    current = set(runs.addresses()) - {path.name for path in doomed}
    for address in measures.addresses():
        record = measures.read(address)
        if record and (record["run"] not in current or record["code"] != measure_code()):
            doomed.append(measures.path(address))
    extras = Store("extras")
    for address in extras.addresses():
        record = extras.read(address)
        if record and (record["run"] not in current or record["code"] != extra_code(record["extra"])):
            doomed.append(extras.path(address))
    for address in notebooks.addresses():
        record = notebooks.read(address)
        if record and record["code"] != notebook_code():
            doomed.append(notebooks.path(address))
    for store in (runs, measures, extras, notebooks):
        doomed += store.unfinished()
    size = sum(_size(path) for path in doomed)
    for path in doomed:
        shutil.rmtree(path, ignore_errors=True)
    return len(doomed), size


def _status(address: str, record: dict) -> str:
    try:
        if run_address(RunSpec(**record["spec"])) != address:
            return "outdated"
    except (ValidationError, ModuleNotFoundError):
        return "outdated"
    return "failed" if record["reason"] else "done"


def _size(folder: Path) -> int:
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
