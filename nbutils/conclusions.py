"""What a study says in plain words, decided by its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from nbutils.comparisons import BASELINES, between_run_table, naive_table, selectivity_share
from nbutils.display import format_number, interval_text
from nbutils.evidence import Evidence, is_registered, verdict
from nbutils.hypotheses import H2_MEASURE, h1_evidence
from nbutils.results import Results
from nbutils.sceptic import living_only, with_living
from nbutils.stats import holm

__all__ = [
    "baseline_ranks",
    "counted",
    "hypothesis_sentence",
    "living_sentence",
    "living_table",
    "preference_sentence",
    "rank_sentence",
    "shared_sign_sentence",
]

WORDS = ("supported", "not supported", "refuted", "inconclusive")


def counted(names: Sequence[str]) -> str:
    """Names as a list for a sentence.

    Examples:
        >>> counted(["a"]), counted(["a", "b", "c"]), counted([])
        ('a', 'a, b and c', 'none')
    """
    if len(names) < 2:
        return names[0] if names else "none"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def hypothesis_sentence(evidence: Sequence[Evidence], hypothesis: str) -> str:
    """Where a hypothesis holds, and which of its tests it misses where it does not.

    Args:
        evidence: all tests of a study, adjusted.
        hypothesis: "H1", "H2" or "H3".

    Returns:
        One sentence or two.

    Raises:
        ValueError: no test of this hypothesis.

    Examples:
        >>> test = Evidence("digits", "true", "H1", "H1a null", "Q above its null", 0.5, 0.4, 0.6)
        >>> hypothesis_sentence([test], "H1")
        '**H1** is supported on digits.'
    """
    own = [e for e in evidence if e.hypothesis == hypothesis and is_registered(e)]
    if not own:
        raise ValueError(f"evidence holds no registered test of {hypothesis!r}")
    names = list(dict.fromkeys(e.dataset for e in own))
    words = {name: verdict([e for e in own if e.dataset == name]) for name in names}
    parts = [f"{word} on {counted([n for n in names if words[n] == word])}" for word in WORDS if word in words.values()]
    text = f"**{hypothesis}** is {counted(parts)}."
    missed = {e.test: [] for e in own if e.outcome in ("fails", "opposite")}
    for test in missed:
        missed[test] = [e.dataset for e in own if e.test == test and e.outcome in ("fails", "opposite")]
    if missed:
        reasons = [f"{test} on {counted(places)}" for test, places in missed.items()]
        text += f" Tests that did not pass: {'; '.join(reasons)}."
    return text


def preference_sentence(results: Sequence[Results]) -> str:
    """On which data sets class preference alone makes graphs as modular as real ones (H1c), with true labels.

    Args:
        results: of each data set.

    Returns:
        A sentence; a data set on which the 95 % interval of the share holds 1 is left open.
    """
    found: dict[str, list[str]] = {}
    for result in results:
        row = selectivity_share(result.conditions()).set_index("labels").loc["true"]
        word = "at least as" if row["low"] >= 1 else "less" if row["high"] < 1 else "not clearly more or less"
        found.setdefault(word, []).append(result.dataset)
    parts = [f"{word} modular on {counted(names)}" for word, names in found.items()]
    return f"Beside real firing, class preference alone makes graphs that are {'; '.join(parts)}."


def baseline_ranks(results: Sequence[Results]) -> pd.DataFrame:
    """Spearman's rho of each measure with test accuracy between networks, per data set with a grid of label noise.

    Args:
        results: of each data set; those without a grid are left out.

    Returns:
        One row per measure: `measure`, one column per data set, `mean` (of the absolute values), strongest first.

    Raises:
        ValueError: no data set has a grid.
    """
    gridded = [r for r in results if len(r.noise_grid())]
    if not gridded:
        names = counted([r.dataset for r in results])
        raise ValueError(f"study must hold a data set with a grid of label noise, received {names}")
    tables = [between_run_table(r.noise_grid(), draws=2).set_index("measure")["rho"] for r in gridded]
    found = pd.concat(tables, axis=1, keys=[r.dataset for r in gridded])
    found["mean"] = found.abs().mean(axis=1)
    return found.sort_values("mean", ascending=False).rename_axis("measure").reset_index()


def rank_sentence(ranks: pd.DataFrame, measure: str) -> str:
    """Where a measure stands among all, and what stands above it.

    Args:
        ranks: see :func:`baseline_ranks`.
        measure: column, such as "modularity".

    Returns:
        One sentence.

    Examples:
        >>> ranks = pd.DataFrame({"measure": ["margin", "modularity Q (H2)"], "mean": [0.9, 0.8]})
        >>> rank_sentence(ranks, "modularity")
        'By the strength of that correlation, modularity Q (H2) is number 2 of 2, after margin.'
    """
    name = BASELINES[measure]
    place = int(ranks.index[ranks["measure"] == name][0])
    above = list(ranks["measure"][:place])
    if place > 3:
        above = [*above[:3], f"{place - 3} others"]
    after = f", after {counted(above)}" if place else ""
    return f"By the strength of that correlation, {name} is number {place + 1} of {len(ranks)}{after}."


def shared_sign_sentence(results: Sequence[Results]) -> str:
    """How modularity goes with training accuracy within runs, which all networks may share and H2a does not count.

    Args:
        results: of each data set.
    """
    found = []
    for result in results:
        table = result.conditions()
        rho = naive_table(table[table["labels"] == "true"], H2_MEASURE)["ρ, trained"].iloc[0]
        found.append(f"{format_number(rho, 2)} on {result.dataset}")
    return (
        f"Within a run with true labels, modularity and training accuracy correlate by {counted(found)} (Spearman, "
        "trained epochs, means over networks). What networks share of this is no evidence for H2a, and none against it."
    )


def living_sentence(results: Sequence[Results], evidence: Sequence[Evidence]) -> str:
    """How many neurons died, and what the verdicts on H1 would be on graphs of living neurons only.

    The tests of H1 on living neurons take the place of the registered ones, and share the correction with all others.

    Args:
        results: of each data set; those on which living neurons were not measured alone are left out.
        evidence: all tests of the study, adjusted.

    Returns:
        Two sentences; nothing without such a data set.
    """
    dead, living = [], {}
    for result in (r for r in results if "living" in r.extras):
        table = with_living(result).conditions()
        last = table[(table["labels"] == "true") & (table["epoch"] == table["epoch"].max())]
        dead.append(f"{last['dead_share'].mean():.0%} on {result.dataset}")
        living |= {(result.dataset, e.test): e for e in h1_evidence(living_only(table), "true")}
    if not dead:
        return ""
    registered = [e for e in evidence if is_registered(e)]
    changed = [replace(living.get((e.dataset, e.test), e), dataset=e.dataset) for e in registered]
    tested = [i for i, e in enumerate(changed) if np.isfinite(e.p_value)]
    for i, p_value in zip(tested, holm([changed[i].p_value for i in tested]), strict=True):
        changed[i] = replace(changed[i], adjusted=float(p_value))
    words, moved = {}, []
    for name in dict.fromkeys(name for name, _ in living):
        was, word = (_h1_word(tests, name) for tests in (registered, changed))
        words.setdefault(word, []).append(name)
        moved += [f"{name} (registered: {was})"] if was != word else []
    found = "; ".join(f"{word} on {counted(names)}" for word, names in words.items())
    return (
        f"Neurons that never fire after training: {counted(dead)}. On graphs of living neurons only, **H1** would be "
        f"{found}; that is another verdict on {counted(moved)}."
    )


def living_table(results: Results) -> pd.DataFrame:
    """The tests of H1 on the graph of all neurons and on that of living ones.

    Args:
        results: of one data set, with the extra "living".

    Returns:
        One row per test with true labels: `test`, `effect`, and the estimates with their 95 % intervals as text.
    """
    table = with_living(results).conditions()
    pairs = zip(h1_evidence(table, "true"), h1_evidence(living_only(table), "true"), strict=True)
    rows = [(a.test, a.question, *(interval_text(e.estimate, e.low, e.high) for e in (a, b))) for a, b in pairs]
    return pd.DataFrame(rows, columns=["test", "effect", "all neurons", "living neurons"])


def _h1_word(evidence: Sequence[Evidence], dataset: str) -> str:
    return verdict([e for e in evidence if (e.dataset, e.hypothesis) == (dataset, "H1")])
