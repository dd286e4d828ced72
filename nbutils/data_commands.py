"""Commands about data sets: `python -m nbutils data` and `data verify`."""

from __future__ import annotations

import argparse
import sys

import numpy as np
import pandas as pd

from nbutils.catalogue import BUILT_IN, available, check_files, parse_name
from nbutils.datasets import TITLES, load_dataset
from nbutils.sources import SOURCES, data_folder
from nbutils.terminal import told

__all__ = ["add_data_command"]


def add_data_command(commands: argparse._SubParsersAction) -> None:
    """Add `data` to the command line."""
    data = commands.add_parser("data", help="list the data sets: what is there, what is missing, what to do")
    data.add_argument("action", nargs="?", choices=["verify"], help="read all files again and check them")
    data.add_argument("names", nargs="*", help="data sets to verify (default: all that are there)")
    data.set_defaults(command=_data)


def _data(options: argparse.Namespace) -> int:
    return _verify(options.names) if options.action else _list()


def _list() -> int:
    rows, missing = [], []
    for name in BUILT_IN:
        if available(name):
            rows.append((name, TITLES[name], "ready", "in an installed package"))
        else:
            missing.append(f'  {name}: comes with a package: pip install "nbutils[data]"')
            rows.append((name, TITLES[name], "missing", ""))
    for name, source in SOURCES.items():
        files = source.files(data_folder())
        if files:
            rows.append((name, source.title, "ready", str(files[0])))
        else:
            download = "" if source.fetch is None else "is downloaded when first used; or "
            missing.append(f"  {name}: {download}put there {source.advice}")
            rows.append((name, source.title, "missing", ""))
    print(pd.DataFrame(rows, columns=["name", "title", "status", "where"]).to_string(index=False))
    print(f"\nFiles are looked for in {data_folder()} (NBUTILS_DATA names another folder).")
    print(
        "Your own pictures: --datasets folder:PATH, one folder per class; folder:PATH@32@grey resizes and greys them.\n"
        'Put quotes around a path with spaces, "folder:/my letters"; a slash ends a path that has an @: folder:a@b/@32.'
    )
    if missing:
        print("Missing:", *missing, sep="\n")
    return 0


def _verify(names: list[str]) -> int:
    """Exit code 0 if all are whole."""
    for name in names:
        parse_name(name)
    wanted = names or [name for name in (*BUILT_IN, *SOURCES) if available(name)]
    bad = 0
    for name in wanted:
        try:
            if name not in BUILT_IN:
                check_files(name)
            data = load_dataset(name)
        except (ValueError, OSError, ModuleNotFoundError) as error:
            bad += 1
            print(told(f"{name}: {error}"), file=sys.stderr)
            continue
        sides = [np.bincount(labels, minlength=len(data.classes)) for labels in (data.train_true, data.test_labels)]
        counts = " + ".join(f"{side.sum():,} ({side.min():,} to {side.max():,} a class)" for side in sides)
        print(f"{name}: whole; {counts} images of {'x'.join(map(str, data.image_shape))}, version {data.version}")
        print(f"  {data.origin}; licence: {data.licence or 'see the package'}")
    return int(bad > 0)
