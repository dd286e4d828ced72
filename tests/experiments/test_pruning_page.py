"""The page on pruning tells the words of its table, whatever world that is of."""

import html

import nbformat
import numpy as np
import pandas as pd
import pytest

from nbutils.experiments.designs import TABLES
from nbutils.experiments.pruning import SPARSITIES
from nbutils.runs.pruning import PRUNINGS

OTHERS = {"class_part": 0.3, "remainder": 0.0, "excess": 0.3, "communities": 8.0}
OTHERS |= {"active_entropy": 2.0, "block_entropy": 3.0}


def table(change, untied, excess):
    """Eight networks on three data sets; under every rule Q changes as told, with and without tied neurons."""
    rng, rows = np.random.default_rng(0), []
    states = [("none", 0.0)] + [(rule, sparsity) for rule in PRUNINGS for sparsity in SPARSITIES]
    for dataset in ("mnist-10k", "fashion-mnist-10k", "cifar10-10k"):
        for seed in range(8):
            q = rng.normal(0.6, 0.05)
            for rule, sparsity in states:
                real = rule != "none"
                rows += [
                    {
                        **{"dataset": dataset, "seed": seed, "rule": rule, "sparsity": sparsity, "stage": stage},
                        **{"reason": "", "degenerate": 0.0, "tied": 5 * real, **OTHERS},
                        "accuracy": 0.9 - sparsity / 10 + rng.normal(0, 0.01),
                        "modularity": q + real * (change + rng.normal(0, 0.01)),
                        "modularity_untied": q + real * (untied + rng.normal(0, 0.01)),
                        "together": excess + 0.02 if real and stage == "before" else np.nan,
                        "together_excess": excess + rng.normal(0, 0.01) if real and stage == "before" else np.nan,
                    }
                    for stage in ("before", "after")
                ]
    return pd.DataFrame(rows)


@pytest.mark.slow(8)
@pytest.mark.parametrize(
    ("truth", "words"),
    [
        (
            (-0.3, 0.0, 0.0),
            [
                "12 contradicted",
                "12 no association",
                "Without tied neurons, asked afterwards: Q hardly changes, so what falls is the measure: −0.0",
            ],
        ),
        ((0.0, -0.3, 0.2), ["12 no association", "12 supported", "Without tied neurons: −0.3"]),
    ],
)
def test_the_page_tells_the_words_of_its_table(truth, words, tmp_path, execute_page, check_outputs):
    (tmp_path / TABLES).mkdir(parents=True)
    made = table(*truth)
    made.to_parquet(tmp_path / TABLES / "pruning.parquet")
    outcome = execute_page("pruning", data="cifar10-10k")
    assert outcome.status == "done", outcome.reason
    cells = nbformat.reads(outcome.notebook, as_version=4).cells
    check_outputs("pruning", cells)
    outputs = [output for cell in cells if cell.cell_type == "code" for output in cell.outputs]
    text = html.unescape("".join(output.get("data", {}).get("text/html", "") for output in outputs))
    for word in words:
        assert word in text
    own = made[made["dataset"] == "cifar10-10k"].set_index(["rule", "sparsity", "stage"])["modularity"].sort_index()
    change = own["magnitude", 0.9, "after"].mean() - own["none", 0.0, "before"].mean()
    assert f"On CIFAR-10 Q changes by {change:+.3f}".replace("-0", "−0") in text
