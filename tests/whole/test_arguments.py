"""Every public name that takes no arrays, called with arguments of another kind, shape or content than it wants.

What may come out: a result, or one sentence that was meant, see `require_sentence` in `test_hostile.py`, where the
functions on arrays and graphs are.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from test_hostile import GOOD, require_sentence
from torch import nn

import nbutils
from nbutils.measures import MeasureSpec
from nbutils.pages.reconstruction import PLAIN, SWITCHES
from nbutils.runs.run import Run, run_once
from nbutils.runs.spec import RunSpec
from nbutils.runs.training import TrainingSettings
from nbutils.study.hypotheses import Evidence
from nbutils.study.results import Results
from nbutils.study.specifications import FACTORS, specifications
from nbutils.support.arguments import fits, named, received
from nbutils.tracking import KINDS

ROOT = Path(__file__).resolve().parents[2]
SOME = [one for one in specifications() if one.null in ("", "nothing")][:4]
TEST = Evidence("digits", "true", "H1", "H1a null", "Q above its null", 0.5, 0.4, 0.6)
EFFECT = nbutils.Estimate(0.5, 0.3, 0.7, (0.35, 0.65), 0.01)
RNG = np.random.default_rng(0)
WEIGHTS, BIASES = [np.ones((5, 4)), np.eye(3, 5)], [np.full(5, -0.1), np.zeros(3)]  # of a network of 4-5-3


def curve() -> pd.DataFrame:
    rows = [dict.fromkeys(FACTORS, "") | one.choices | {"label": one.label, "hypothesis": "H2"} for one in SOME]
    return pd.DataFrame(rows).assign(primary=[True, False, False, False], predicted=1, rho=0.5, low=0.2, high=0.7)


def epochs(**columns: Any) -> pd.DataFrame:
    """Rows of two runs and four epochs."""
    rows = pd.DataFrame({"run": list("aaaabbbb"), "seed": [0] * 4 + [1] * 4, "epoch": [0, 1, 2, 3] * 2})
    return rows.assign(dataset="digits", labels="true", parts="conditions", title="Digits", noise=0.0, **columns)


def measured() -> pd.DataFrame:
    names = ("modularity", "null_circular", "well_defined", "pattern_entropy", "train_accuracy", "test_accuracy")
    names += (
        "binned_entropy",
        "class_conditional_entropy",
        "firing_entropy",
        "updates",
        "dead_share",
        "agreement",
        "active_entropy",
    )
    return epochs(**{name: RNG.random(8) for name in names})


def switches() -> pd.DataFrame:
    return pd.concat([measured().assign(switch=name) for name in (PLAIN, "strict bins")], ignore_index=True)


def shuffled() -> pd.DataFrame:
    labels = [one.label for one in specifications() if one.hypothesis == "H2"]
    return pd.DataFrame([{"run": r, "specification": s, "value": RNG.random()} for r in "ab" for s in labels])


def readings_table() -> pd.DataFrame:
    rows = [("H2", name, 0.5, -0.1, 0.1, 0.2) for name in ("median effect", "share with the predicted sign")]
    return pd.DataFrame(rows, columns=["hypothesis", "statistic", "observed", "low", "high", "p"])


@cache
def study() -> Results:
    """As committed tables have it, with all that functions ask for."""
    return nbutils.read_archive(ROOT / "book/results/digits", "digits")


@cache
def simulated() -> Results:
    return nbutils.simulated_study("performance", 0, seeds=2, epochs=2)


@cache
def run() -> Run:
    return run_once(RunSpec(epochs=1, model="mlp:8", probe=20))


@cache
def masks() -> nbutils.ClassMasks:
    return nbutils.class_masks(WEIGHTS, BIASES, np.eye(4), np.arange(4) % 3, steps=2)


@cache
def digits() -> nbutils.Dataset:
    return nbutils.load_dataset("digits")


def figure() -> Figure:
    found, _ = plt.subplots()
    plt.close(found)
    return found


def network() -> nn.Module:
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
    model[0].bias.data = torch.tensor([-1.0, 0.5, 1.0])  # of both signs, or images of zeros pass the ReLU unchanged
    return model


SERIES = pd.DataFrame(
    {"epoch": [1, 2, 3], "entropy_bits": [3.0, 2.0, 1.0], "train_accuracy": 0.1, "test_accuracy": 0.1}
)
OURS = pd.DataFrame({0: [3.0, 2.0, 1.5], 1: [2.0, 2.5, 1.0]}, index=pd.Index([1, 2, 3], name="epoch"))
ANSWERS = pd.DataFrame({"labels": "true", "run": "a", "epoch": 1, "neurons": [6, 4], "selective_for": [3, 3]})
PUBLISHED = next(iter(sorted((ROOT / "book/results/published").glob("*.csv")))).name


@cache
def gridded() -> Results:
    """With a grid of label noise, of which every network is measured in two ways."""
    grid = simulated().noise_grid()
    table = grid.assign(run=grid["labels"] + grid["seed"].astype(str))
    runs = table.drop_duplicates("run")[["run", "parts", "dataset", "labels", "seed"]].assign(input_scale=1.0)
    values = [{"run": run, "specification": one.label, "value": RNG.random()} for run in runs["run"] for one in SOME]
    return Results("made up", table, runs, {}, {}, extras={"specifications": pd.DataFrame(values)})


@cache
def rebuilt() -> Results:
    """With the released code rebuilt on it."""
    table = measured().assign(parts="conditions released")
    runs = table.drop_duplicates("run")[["run", "parts", "dataset", "labels", "seed"]].assign(input_scale=1.0)
    kept = table[["run", "epoch", "modularity", "null_circular", "well_defined"]].assign(entropy=1.0)
    extra = pd.concat([kept.assign(variant=name) for name in dict.fromkeys(v for _, v in SWITCHES.values())])
    return Results("digits", table, runs, {}, {}, extras={"reconstruction": extra})


# A call of each function that works; each of its arguments is then replaced by what nobody should pass.
GOOD_CALLS: dict[str, Callable[[], dict[str, Any]]] = {
    "Communities": lambda: (
        {"labels": np.zeros(3, int), "modularity": 0.1, "connected_share": 1.0}
        | {"modularity_per_seed": np.array([0.1]), "seed_labels": np.zeros((1, 3), int)}
    ),
    "ClassMasks": lambda: {one.name: getattr(masks(), one.name) for one in fields(masks())},
    "Dataset": lambda: {one.name: getattr(digits(), one.name) for one in fields(digits())},
    "Added": lambda: {"baselines": 0.5, "full": 0.6, "gain": EFFECT},
    "Estimate": lambda: {one.name: getattr(EFFECT, one.name) for one in fields(EFFECT)},
    "Evidence": lambda: {one.name: getattr(TEST, one.name) for one in fields(TEST)},
    "Manifolds": lambda: (
        dict.fromkeys(("radius", "dimension", "capacity"), 1.0)
        | dict.fromkeys(("classes", "radii", "dimensions", "capacities"), np.ones(2))
    ),
    "MeasureSpec": lambda: {"density": 0.1, "resolution": 1.0, "seeds": 2, "null_draws": 1, "every_epoch": True},
    "PredictionTree": lambda: (
        {"leaves": 4.0, "depth": 2.0, "fidelity": 0.9}
        | {"path_leaves": np.array([4, 1]), "path_fidelity": np.array([0.9, 0.3])}
    ),
    "Reliability": lambda: {"half": 0.9, "whole": 0.95, "spread": 0.4, "reason": ""},
    "Results": lambda: {one.name: getattr(study(), one.name) for one in fields(study())},
    "Run": lambda: {one.name: getattr(run(), one.name) for one in fields(run())},
    "RunSpec": lambda: RunSpec().model_dump(),
    "SoftTree": lambda: (
        {"fidelity": 0.9, "leaves": 2.0, "depth": 1.0, "use": np.full(2, 0.5), "predicted": np.arange(2)}
    ),
    "Specification": lambda: {one.name: getattr(SOME[0], one.name) for one in fields(SOME[0])},
    "Study": lambda: nbutils.Study().model_dump(),
    "TrainingSettings": lambda: {"epochs": 1, "batch_size": 32, "learning_rate": 0.1, "input_scale": 1.0},
    "Watch": lambda: (
        {"model": network(), "inputs": torch.ones(5, 4), "labels": np.arange(5) % 2, "layers": "1"}
        | {"rule": "top-decile", "spec": MeasureSpec(), "layout": "auto"}
    ),
    "perturbations": lambda: {
        "results": replace(
            simulated(), table=simulated().conditions().query("labels == 'true'").assign(parts="conditions")
        )
    },
    "accuracy_noise": lambda: {"images": 1000, "level": 0.5},
    "between_run_table": lambda: {"grid": simulated().noise_grid(), "columns": ["modularity"], "draws": 20},
    "brightness_table": lambda: {"data": digits()},
    "build_model": lambda: {"model": "mlp:4", "inputs": 3, "classes": 2, "dropout": 0.1},
    "callout": lambda: {"title": "H1", "text": "Here.", "word": "supported"},
    "capture": lambda: {"model": network(), "layers": ["1"]},
    "capture_activations": lambda: (
        {"model": network(), "inputs": torch.ones(5, 4), "layers": "1", "batch_size": 2}
        | {"reduce": "mean", "prepare": None, "layout": "auto"}
    ),
    "choice_effects": lambda: {"table": curve()},
    "community_selectivity": lambda: {"answers": ANSWERS.assign(preference=0.5)},
    "class_masks": lambda: (
        {"weights": WEIGHTS, "biases": BIASES, "inputs": np.eye(4), "labels": np.arange(4) % 3}
        | {"steps": 2, "strength": 1e-5, "batch_size": 4, "seed": 0}
    ),
    "clock_table": lambda: {"long": measured(), "networks": measured(), "measure": "binned_entropy"},
    "collect_evidence": lambda: {"results": [simulated()]},
    "control_outcomes": lambda: {"results": simulated(), "tries": 1},
    "count_cofiring": lambda: {"model": network(), "layers": "1", "threshold": 0.0, "layout": "auto"},
    "early_prediction": lambda: (
        {"table": measured(), "measures": ["modularity"], "rng": 0, "early": [1]}
        | {"outcome": "test_accuracy", "draws": 20}
    ),
    "entropy_series": lambda: {"results": study()},
    "event_rates": lambda: {"evolution": epochs(**dict.fromkeys(KINDS, 1)).query("epoch > 0"), "rng": 0, "draws": 100},
    "evidence_table": lambda: {"evidence": [TEST]},
    "figure_style": dict,
    "fold": lambda: {"summary": "More", "opened": True},
    "grid_values": lambda: {"results": gridded()},
    "interval_text": lambda: {"value": 0.1, "low": 0.0, "high": 0.2, "digits": 2},
    "is_portable": dict,
    "is_prespecified": lambda: {"evidence": TEST},
    "judge": lambda: (
        {"estimate": EFFECT, "threshold": 0.2, "direction": 1, "bound": 0.3, "adjusted": 0.01, "one_sided": False}
        | {"reliability": nbutils.Reliability(0.9, 0.95, 0.4, "")}
    ),
    "label_conditions": lambda: {"sheet": nbutils.read_datasheet("digits"), "conditions": ("true",), "seed": 0},
    "linear_regions": lambda: {"weights": WEIGHTS, "biases": BIASES, "inputs": np.eye(4), "rng": 0, "lines": 2},
    "load_dataset": lambda: {"name": "digits", "labels": "true", "seed": 0},
    "long_runs": lambda: {"studies": [study()]},
    "simulated_study": lambda: {"scenario": "nothing", "rng": 0, "seeds": 2, "epochs": 2},
    "matched_table": lambda: {"studies": [study()], "measures": {"modularity": "Q"}},
    "measure": lambda: (
        {"model": torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))}
        | {"images": np.random.default_rng(0).normal(size=(20, 4)), "labels": np.arange(20) % 2, "twins": 1, "seed": 0}
        | {"mean": None, "std": None, "examples": 20, "neurons": 32, "layers": None, "reduce": "mean", "layout": "auto"}
        | {"device": "cpu", "progress": None}
    ),
    "Measured": lambda: dict.fromkeys(("table", "neurons", "edges", "costs", "layers"), pd.DataFrame()) | {"about": {}},
    "propose_layers": lambda: {"model": network(), "inputs": np.zeros((5, 4), np.float32), "prepare": None},
    "measure_run": lambda: {"run": run(), "spec": MeasureSpec(seeds=1, null_draws=1), "store": None},
    "modularity_panels": lambda: {"rows": switches()},
    "naive_table": lambda: {"table": measured(), "measures": ["modularity"], "accuracy": "train_accuracy"},
    "normalised_margins": lambda: {"logits": np.eye(3), "labels": np.arange(3), "weights": WEIGHTS},
    "open_page": lambda: {"template": "datasets", "namespace": {"datasets": "digits"}},
    "partitions_of": lambda: {"run": run(), "density": 0.5, "seeds": 1},
    "path_norm": lambda: {"weights": WEIGHTS, "biases": BIASES},
    "prediction_tree": lambda: (
        {"inputs": np.eye(4), "predictions": np.arange(4) % 2, "held_out": np.eye(4)}
        | {"held_out_predictions": np.arange(4) % 2, "fidelity": 0.7, "seed": 0}
    ),
    "published_panels": lambda: {"series": SERIES, "ours": {"one": OURS}},
    "random_networks": lambda: {"studies": [study()]},
    "read_archive": lambda: {"folder": ROOT / "book/results/digits", "dataset": "digits"},
    "read_datasheet": lambda: {"name": "digits"},
    "read_series": lambda: {"path": ROOT / "book/results/published" / PUBLISHED},
    "readings": lambda: {"tests": {"one": readings_table()}},
    "reference_tasks": lambda: {"name": "mnist"},
    "regions_between": lambda: {"weights": WEIGHTS, "biases": BIASES, "start": np.zeros(4), "end": np.ones(4)},
    "resolve_device": lambda: {"device": "cpu"},
    "run_once": lambda: {"spec": run().spec, "store": None},
    "say": lambda: {"text": "Here."},
    "settling": lambda: {"evolution": measured(), "table": measured(), "rng": 0},
    "show": lambda: {"figure": figure(), "caption": "What it shows.", "alt": "A figure.", "min_width": 100},
    "show_table": lambda: {"table": SERIES, "caption": "What it holds.", "digits": 2, "names": ["epoch"]},
    "shuffle_table": lambda: {"rows": shuffled()},
    "simple_accuracies": lambda: {"data": digits(), "examples": 100},
    "soft_tree": lambda: (
        {"inputs": np.eye(4), "logits": np.eye(4), "held_out": np.eye(4), "held_out_logits": np.eye(4)}
        | {"depth": 2, "epochs": 2, "sharpness": 1.0, "seed": 0}
    ),
    "spectral_norms": lambda: {"weights": WEIGHTS},
    "spearman_brown": lambda: {"reliability": 0.5, "times": 2.0},
    "specification_curve": lambda: {"table": curve()},
    "switch_table": lambda: {"rows": switches()},
    "switch_words": lambda: {"rows": switches()},
    "switched": lambda: {"results": rebuilt()},
    "train": lambda: (
        {"models": [nn.Linear(64, 10)], "data": [digits()], "settings": TrainingSettings(epochs=1)} | {"seeds": [0]}
    ),
    "turning_table": lambda: {"runs": measured().query("run == 'a'"), "measures": {"modularity": "Q"}},
    "verdict": lambda: {"evidence": [TEST]},
    "write_archive": lambda: {"folder": Path("never"), "results": study()},
}
# Written to, or computed with for long.
NOT_CALLED = {"write_archive"}
# What an argument is called in sentences that other functions say.
SAID = {
    "switch_words": ["table of results"],
    "random_networks": ["table of results"],
    "matched_table": ["table of results"],
    "long_runs": ["table of results"],
    "load_dataset": ["dataset"],
    "read_datasheet": ["dataset"],
    "reference_tasks": ["dataset"],
    "label_conditions": ["labels"],
    "open_page": ["dataset"],
    "grid_values": ["extra"],
    "capture_activations": ["model failed on inputs"],
}


def hostile(good: Any) -> Iterator[Any]:
    """Things of another kind than an argument wants, and things like it with something wrong."""
    yield from (None, 3, -1, 1.5, float("nan"), True, "text", b"", [], {}, object(), 1j, [3], {"one": 3}, 10**30)
    yield from (np.zeros((2, 3)), np.zeros(0), pd.DataFrame(), pd.DataFrame({"x": [1.0, 2.0]}), figure, torch.ones(2))
    yield from near(good)


def changed(table: pd.DataFrame, columns: list[Any], value: Any) -> pd.DataFrame:
    found = table.copy()
    found[columns] = value
    return found


def near(good: Any) -> Iterator[Any]:
    """The same with something wrong in it."""
    if isinstance(good, pd.DataFrame):
        yield from (
            good.iloc[:0],
            good.iloc[:1],
            good.astype(str),
            good.iloc[::-1],
            good.set_axis(range(len(good.T)), axis=1),
        )
        yield from (good.drop(columns=name) for name in list(good)[:8])
        numbers = list(good.select_dtypes("number"))
        for name, value in [(name, value) for name in numbers[:8] for value in (np.nan, np.inf, "text")]:
            yield changed(good, [name], value)
        yield changed(good, numbers, np.nan)
        yield pd.concat([good, good], axis=1)
        yield pd.concat([good, good], ignore_index=True)
    elif isinstance(good, Results):
        yield from (replace(good, table=pd.DataFrame()), replace(good, runs=pd.DataFrame()), replace(good, extras={}))
        yield from (replace(good, table=part) for part in list(near(good.table))[:8])
        yield from (replace(good, runs=part) for part in list(near(good.runs))[:3])
    elif isinstance(good, Mapping):
        for value in (*list(near(next(iter(good.values()), None))), 3, None):
            yield dict.fromkeys(good, value)
        yield dict(enumerate(good.values()))
    elif isinstance(good, list | tuple) and len(good):
        yield from (type(good)([value]) for value in (*near(good[0]), None, 3, "text", object()))
        yield type(good)([good[0], 3])
    elif isinstance(good, np.ndarray):
        yield from (good[None], good[:0], good.astype(str), good.astype(object))
    elif isinstance(good, int | float):
        yield from (0, float("inf"), -0.5, 2**63, "3", np.float64(0.5), [good])
    elif isinstance(good, str | Path):
        yield from ("", " ", "a\nb", "x" * 1000, 0, [str(good)])


def use(result: Any) -> None:
    """What only happens once a result is used."""
    if isinstance(result, AbstractContextManager):
        with result:
            pass
    elif isinstance(result, Iterator):
        next(result, None)


def test_every_public_function_is_here_or_among_those_on_arrays():
    public = {name for name in nbutils.__all__ if callable(getattr(nbutils, name))}
    assert set(GOOD) | set(GOOD_CALLS) == public
    assert not set(GOOD) & set(GOOD_CALLS)


@pytest.mark.parametrize("name", GOOD_CALLS)
def test_a_result_or_one_sentence(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    good, raw = GOOD_CALLS[name](), []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DeprecationWarning)
        if name not in NOT_CALLED:
            use(getattr(nbutils, name)(**good))
        for argument, value in good.items():
            for other in hostile(value):
                if argument in ("prepare", "progress") and callable(other):
                    continue  # it is called, and what it raises is its own
                try:
                    use(getattr(nbutils, name)(**good | {argument: other}))
                except (ValueError, TypeError, OSError, RuntimeError) as error:
                    try:
                        require_sentence(error, {**good, **dict.fromkeys(SAID.get(name, ()))})
                    except AssertionError as told:
                        raw.append(f"{argument}={received(other)}: {type(error).__name__} {error} {told}")
                except Exception as error:
                    raw.append(f"{argument}={received(other)}: {type(error).__name__} {error}")
    plt.close("all")
    assert not raw, "\n".join(raw)


NONSENSE = [
    (nbutils.Specification, "share", (float("nan"), -0.1, 1.5)),
    (nbutils.Specification, "resolution", (float("nan"), float("inf"), -1.0)),
    (nbutils.Specification, "firing", ("text",)),
    (nbutils.Specification, "bins", (-1,)),
    (nbutils.Specification, "details", (("text",),)),
    (nbutils.Evidence, "direction", (0, 2)),
    (nbutils.TrainingSettings, "batch_size", (0, -1)),
    (nbutils.TrainingSettings, "learning_rate", (0.0, float("nan"))),
    (nbutils.build_model, "inputs", (0, -1)),
    (nbutils.show_table, "digits", (-1, 10**30)),
]


@pytest.mark.parametrize(("function", "argument", "values"), NONSENSE)
def test_values_out_of_range_are_refused(function, argument, values):
    good = GOOD_CALLS[function.__name__]()
    for value in values:
        with pytest.raises(ValueError, match=argument):
            function(**good | {argument: value})


def test_rows_that_stand_twice_are_refused():
    """They would count twice, or as another network."""
    twice = pd.concat([measured(), measured()], ignore_index=True)
    with pytest.raises(ValueError, match="table must have one row per seed and epoch, received several"):
        nbutils.naive_table(twice, "modularity")
    with pytest.raises(ValueError, match="rows must have one row per switch and seed and epoch"):
        nbutils.switch_table(pd.concat([switches(), switches()]))


def test_an_item_among_many_is_found():
    """All of a list is looked at, wherever the odd one is."""
    with pytest.raises(
        TypeError, match=r"verdict\(\): evidence must be of type Sequence\[Evidence\], received list of 100 items"
    ):
        nbutils.verdict([TEST] * 99 + ["text"])


def test_hints_and_words():
    assert fits(np.array(["a"]), Sequence[str])
    assert fits(pd.Index(["a"]), Sequence[str])
    assert not fits(np.array([["a"]]), Sequence[str])
    assert not fits({"a"}, Sequence[str])
    assert fits((1, "a"), tuple[int, str])
    assert not fits((1, "a", 2), tuple[int, str])
    assert not fits(10**400, float)
    assert named(Run | None) == "Run | None"
    assert named(pd.DataFrame) == "DataFrame"
    assert received(pd.DataFrame({"a": range(10**6)})) == "DataFrame of shape (1000000, 1)"


def test_a_call_that_does_not_fit_names_the_function():
    with pytest.raises(TypeError, match=r"^say\(\): missing a required argument: 'text'$"):
        nbutils.say()


def test_a_class_keeps_its_signature():
    assert list(inspect.signature(nbutils.TrainingSettings).parameters) == [
        one.name for one in fields(TrainingSettings)
    ]


def test_numbers_held_as_objects_are_numbers():
    """So pandas leaves them where a table without rows was put in front."""
    found = nbutils.choice_effects(curve().astype(object))
    pd.testing.assert_frame_equal(found, nbutils.choice_effects(curve()))


def test_columns_may_be_named_by_a_mapping():
    grid = simulated().noise_grid()
    found = nbutils.between_run_table(grid, {"modularity": "Q"}, draws=20)
    pd.testing.assert_frame_equal(found, nbutils.between_run_table(grid, ["modularity"], draws=20))
