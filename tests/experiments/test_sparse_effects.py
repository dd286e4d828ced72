"""Words about sparse units, on tables whose answer is known."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from nbutils.experiments import sparse_effects
from nbutils.experiments.designs import TABLES
from nbutils.experiments.sparse_effects import (
    COLUMNS,
    SPARSE_RULES,
    read_looks,
    sound_networks,
    sparse_verdicts,
    trace_table,
)
from nbutils.support.files import project_folder

PARAMETERS = json.dumps({"sparse": {"schedule": {"stop": 0.001}}})


def made(seeds=6, gap=0.3, risen=0.4, density=0.001, edit=0.9, reason=""):
    """MT with a confusion of about 0.1, the others with `gap` more; agreement of communities of MT rises by `risen`."""
    rng, rows = np.random.default_rng(0), []
    for seed in range(seeds):
        for condition in ("MT", "ST", "L1", "KL", "none"):
            for final in (0, 1):
                row = dict.fromkeys(COLUMNS, 0.0)
                row |= {"settings": f"{condition}{seed}", "task": "lines", "condition": condition, "seed": seed}
                row |= {"final": final, "samples": 100 * final, "reason": reason, "parameters": PARAMETERS}
                row |= {"test_edit": edit, "density": density, "ami_motif": 0.1 + risen * final + rng.normal(0, 0.01)}
                row["confusion"] = 0.1 + gap * (condition != "MT") + rng.normal(0, 0.01)
                row["trace"] = (
                    json.dumps([{"samples": 0, "edit": 0.1}, {"samples": 100, "edit": edit}]) if final else ""
                )
                rows.append(row)
    return pd.DataFrame(rows)


def words(table, question="confusion"):
    found = sparse_verdicts(table)
    return set(found.loc[found["question"] == question, "word"])


def test_words_follow_what_was_put_in():
    assert words(made()) == {"supported"}
    assert words(made(gap=-0.1)) == {"contradicted"}
    assert words(made(gap=0.0)) == {"no association"}
    assert words(made(risen=0.0), "communities") == {"no association"}
    assert words(made(), "communities") == {"supported"}


def test_effects_are_mean_differences_of_pairs():
    table = made()
    last = table[table["final"] == 1].pivot(index="seed", columns="condition", values="confusion")
    found = sparse_verdicts(table).query("question == 'confusion'").set_index("condition")
    for name in ("ST", "L1", "KL", "none"):
        assert found.loc[name, "effect"] == pytest.approx((last[name] - last["MT"]).mean())
        assert found.loc[name, "low"] < found.loc[name, "effect"] < found.loc[name, "high"]
    risen = sparse_verdicts(table).query("question == 'communities'")["effect"].item()
    assert risen == pytest.approx(0.4, abs=0.02)


def test_too_few_networks_decide_nothing():
    assert words(made(seeds=4)) == {"undecided"}
    assert words(made(edit=0.4)) == {"undecided"}, "networks that do not read do not count"
    assert words(made(reason="training diverged")) == {"undecided"}
    assert len(sound_networks(made(edit=0.4))) == 0


def test_a_task_on_which_density_stayed_high_is_not_measurable():
    assert words(made(density=0.0021)) == {"not measurable"}


def test_a_table_without_networks(tmp_path):
    table = read_looks(tmp_path / "none.parquet")
    assert list(table.columns) == COLUMNS
    assert len(sparse_verdicts(table)) == len(trace_table(table)) == len(sound_networks(table)) == 0


def test_traces_of_all_networks():
    traces = trace_table(made(seeds=2))
    assert len(traces) == 2 * 5 * 2
    assert traces.groupby(["condition", "seed"])["samples"].max().eq(100).all()


def test_the_rules_stay_as_they_were_fixed():
    assert (SPARSE_RULES.confusion, SPARSE_RULES.agreement, SPARSE_RULES.reads, SPARSE_RULES.least) == (
        0.05,
        0.1,
        0.5,
        5,
    )


def test_the_interval_of_a_confusion_error_counts_matched_activations():
    """Shares that a whole number of activations gives come out as these."""
    table = sparse_effects.read_looks(project_folder(TABLES) / TABLES / "sparse-full.parquet")
    full = sparse_effects.last_looks(table).set_index("condition")
    for condition, row in full.iterrows():
        found = sparse_effects.confusion_share(row)
        assert found.value == pytest.approx(row["confusion"], abs=1e-12), condition
        again = binomtest(found.count, found.networks).proportion_ci(0.95, "exact")
        assert (found.low, found.high) == pytest.approx((again.low, again.high))
    assert (found.count, found.networks) == (98, 1644)  # L1
