"""A network measured: the table holds what the functions of the core give, and words follow from its columns."""

from __future__ import annotations

import json
import re
import tracemalloc
from copy import deepcopy
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import nbutils as nb
from nbutils.cli import main
from nbutils.measures import class_cells, measure_matched
from nbutils.own.measure import DRAWS, GRAPH, WHOLE, Measured, _table, _word
from nbutils.pages import answering, own_network
from nbutils.second import answers

TABLES = ["table", "neurons", "edges", "costs", "layers"]


@pytest.fixture(scope="module")
def trained() -> tuple[nn.Module, np.ndarray, np.ndarray]:
    """A network that knows the digits, and the digits."""
    torch.manual_seed(0)
    data = nb.load_dataset("digits")
    model = nn.Sequential(nn.Linear(64, 80), nn.ReLU(), nn.Linear(80, 40), nn.ReLU(), nn.Linear(40, 10))
    x, y = torch.from_numpy(data.train_inputs), torch.from_numpy(data.train_true)
    optimiser = torch.optim.Adam(model.parameters(), 0.005)
    for _ in range(120):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimiser.step()
    return model, data.test_inputs, data.test_labels


@pytest.fixture(scope="module")
def found(trained) -> Measured:
    return nb.measure(*trained, twins=2)


@pytest.mark.parametrize(("layers", "names"), [("3", ["3"]), ("1 2", ["1", "2"])])
def test_some_of_the_layers_that_would_be_proposed(trained, layers, names):
    """How the others are read is nothing to them: of an activation function its type does not tell."""
    found = nb.measure(*trained, layers=layers, twins=1, examples=100)
    assert found.layers["name"].tolist() == names


def test_called_functions_among_the_layers_that_are_asked_for():
    class Called(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.head = nn.Conv2d(1, 40, 3), nn.Linear(40, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(torch.relu(self.conv(x)).mean(dim=(2, 3)))

    images = np.random.default_rng(0).normal(size=(60, 1, 8, 8)).astype(np.float32)
    found = nb.measure(Called(), images, layers="*relu()", twins=1, examples=60)
    assert found.table["layer"].unique().tolist() == ["relu()", WHOLE]
    with pytest.raises(ValueError, match=r"matches none .*'conv', 'head'; looked at if none are named: 'relu\(\)'"):
        nb.measure(Called(), images, layers="foo*", twins=1, examples=60)


def at(table: pd.DataFrame, layer: str, measure: str) -> pd.Series:
    return table[(table["layer"] == layer) & (table["measure"] == measure)].iloc[0]


def test_numbers_are_those_of_the_core(trained, found):
    model, x, y = trained
    seen = nb.capture_activations(model, x, "1 3")
    activations, predicted = np.hstack(list(seen.values())), model(torch.from_numpy(x)).argmax(dim=1).numpy()
    fired = nb.firing(activations)
    assert list(dict.fromkeys(found.table["layer"])) == ["1", "3", WHOLE]
    assert at(found.table, "1", "neurons")["value"] == 80
    assert at(found.table, "3", "active")["value"] == fired[:, 80:].any(axis=0).sum()
    size = int(at(found.table, WHOLE, "compared")["value"])
    assert size == fired.any(axis=0).sum(), "a single draw of neurons, with several of each null"
    spec = GRAPH.model_copy(update={"null_draws": DRAWS})
    own = measure_matched(fired, class_cells(y, predicted), 0, size, spec, DRAWS)
    assert at(found.table, WHOLE, "modularity")["value"] == own["modularity"]
    assert at(found.table, WHOLE, "remainder")["value"] == own["remainder"]
    parts = [at(found.table, WHOLE, name)["value"] for name in ("class_part", "remainder", "excess")]
    assert parts[0] + parts[1] == pytest.approx(parts[2])
    assert at(found.table, "3", "mutual_information")["value"] == pytest.approx(
        nb.mutual_information(fired[:, 80:], y).mean()
    )
    assert found.about["accuracy"] == pytest.approx((predicted == y).mean())
    assert found.about["accuracy"] > 0.85
    assert len(found.neurons) == 120
    assert found.neurons["rate"].to_numpy() == pytest.approx(fired.mean(axis=0))
    assert set(found.edges.stack()) <= set(range(120))


def test_a_trained_network_is_above_its_references_and_an_untrained_one_is_not(found, trained):
    assert at(found.table, WHOLE, "excess")["word"] == "above"
    assert at(found.table, WHOLE, "linear_probe")["word"] == "above"
    assert at(found.table, WHOLE, "neural_collapse")["word"] == "below"
    torch.manual_seed(5)
    fresh = nn.Sequential(nn.Linear(64, 80), nn.ReLU(), nn.Linear(80, 40), nn.ReLU(), nn.Linear(40, 10))
    nothing = nb.measure(fresh, *trained[1:], twins=5)
    decided = nothing.table[nothing.table["word"].isin(["above", "below"])]
    assert at(nothing.table, WHOLE, "excess")["word"] == "among"
    assert len(decided) < 0.2 * len(nothing.table)


def test_words_follow_from_the_columns(found):
    rows = found.table.dropna()
    low = rows[["untrained_low", "noise_low"]].min(axis=1)
    high = rows[["untrained_high", "noise_high"]].max(axis=1)
    own = rows[["value", "first", "second"]]
    expected = np.where(own.min(axis=1) > high, "above", np.where(own.max(axis=1) < low, "below", "among"))
    assert (rows["word"] == expected).all()
    assert set(expected) == {"above", "below", "among"}


@pytest.mark.parametrize(
    ("value", "first", "second", "word"),
    [
        (5, 4, 6, "above"),
        (3, 4, 6, "among"),
        (5, 3, 6, "among"),
        (0, -1, 0, "below"),
        (2, 0, 0, "among"),
        (np.nan, 4, 6, "unknown"),
    ],
)
def test_a_value_within_its_references_is_never_beyond_them(value, first, second, word):
    network, part = ["own"] * 3, ["whole", "first", "second"]
    rows = [(*one, "modularity", x) for *one, x in zip(network, ["0"] * 3, part, (value, first, second), strict=True)]
    rows += [(name, "0", one, "modularity", x) for name, x in (("untrained 0", 1), ("noise", 3)) for one in part]
    assert _table(rows)["word"].tolist() == [word]


def test_the_model_stays_as_it_was_and_the_same_comes_again(trained, found):
    model, x, y = trained
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model.train()
    again = nb.measure(nn.DataParallel(model), torch.from_numpy(x), torch.from_numpy(y), twins=2)
    assert model.training
    assert all((before[name] == value).all() for name, value in model.state_dict().items())
    assert not any(len(one._forward_hooks) + len(one._forward_pre_hooks) for one in model.modules())
    pd.testing.assert_frame_equal(again.table, found.table)


def test_labels_keep_their_numbers(trained):
    """Two of ten classes, neither of them the first: what is predicted is held against the labels as they are."""
    model, x, y = trained
    some = np.isin(y, (3, 8))
    found = nb.measure(model, x[some], y[some], twins=1)
    predicted = model(torch.from_numpy(x[some])).argmax(dim=1).numpy()
    assert found.about["accuracy"] == pytest.approx((predicted == y[some]).mean())
    assert found.about["accuracy"] > 0.8
    assert found.about["classes"] == 2
    assert set(found.neurons["selective_for"].dropna()) <= {3, 8}


def test_without_labels_what_needs_none_is_there(trained):
    model, x, _ = trained
    found = nb.measure(model, x, twins=1)
    names = set(found.table["measure"])
    assert {"modularity", "class_part", "active_entropy", "block_entropy", "confidence"} <= names
    assert not {"linear_probe", "mutual_information", "probe_accuracy", "neural_collapse"} & names
    assert found.about["accuracy"] is None
    assert "selective_for" not in found.neurons
    silent = nn.Sequential(nn.Linear(64, 40), nn.ReLU(), nn.Linear(40, 1))
    alone = nb.measure(silent, x, twins=1)
    assert np.isnan(at(alone.table, WHOLE, "class_part")["value"]), "nothing is predicted"
    assert np.isfinite(at(alone.table, WHOLE, "excess")["value"])


def test_a_model_is_not_its_own_twin_and_images_are_not_their_own_noise():
    """Whoever builds a model or draws images under a seed must not meet the same draws among the references."""
    for seed in range(3):
        torch.manual_seed(seed)
        images = torch.randn(60, 64)
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(64, 50), nn.ReLU(), nn.Linear(50, 3))
        row = at(nb.measure(model, images, twins=1, seed=seed).table, WHOLE, "total_correlation")
        own = set(row[["value", "first", "second"]])
        assert not own & set(row[["untrained_low", "untrained_high", "noise_low", "noise_high"]])


class Shy(nn.Module):
    """Cannot be shown what is below 0, as noise is, and gives a dict."""

    def __init__(self, least: float = 0) -> None:
        super().__init__()
        self.linear, self.head, self.least = nn.Linear(64, 50), nn.Linear(50, 3), least

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        if x.min() < self.least:
            raise ValueError("below 0")
        return {"features": x, "logits": self.head(torch.tanh(self.linear(x)))}


def test_a_reference_that_fails_is_left_out_and_told():
    found = nb.measure(Shy(), np.abs(IMAGES), [0, 1] * 20, twins=1)
    assert list(found.about["left_out"]) == ["noise"]
    assert "below 0" in found.about["left_out"]["noise"]
    assert found.about["twins"] == 1
    row = at(found.table, WHOLE, "excess")
    assert np.isfinite([row["value"], row["untrained_low"]]).all()
    assert row["word"] == "unknown"
    assert "Left out, for they could not be measured: noise." in own_network.show_found(found).text


def test_scores_in_a_dict_count_and_what_gives_none_is_told():
    model = Shy(-99)
    found = nb.measure(model, IMAGES, [0, 1] * 20, twins=1)
    predicted = model(torch.from_numpy(IMAGES))["logits"].argmax(dim=1).numpy()
    assert found.about["accuracy"] == pytest.approx((predicted == np.arange(40) % 2).mean())
    assert found.about["outputs"] == 3
    model.forward = lambda x: {"features": torch.tanh(model.linear(x))}
    bare = nb.measure(model, IMAGES, [0, 1] * 20, twins=1)
    assert bare.about["outputs"] is bare.about["accuracy"] is None
    assert "Accuracy" not in own_network.show_found(bare).text


def test_neurons_that_are_never_above_0_are_counted():
    model = nn.Sequential(nn.Linear(64, 40), nn.LogSigmoid(), nn.Linear(40, 50), nn.ReLU(), nn.Linear(50, 3))
    found = nb.measure(model, IMAGES, twins=1, layers="1 3")
    assert found.about["never_above_0"] == {"1": 40}
    assert at(found.table, "1", "active")["value"] == 0


def test_a_graph_without_edges_has_a_page(tmp_path):
    """Of the tables that `save` wrote, without the names that the command adds."""
    narrow = nn.Sequential(nn.Linear(64, 2), nn.ReLU(), nn.Linear(2, 3))
    nn.init.constant_(narrow[0].bias, 1.0)
    found = Measured.load(nb.measure(narrow, IMAGES, [0, 1] * 20, twins=1).save(tmp_path))
    assert found.edges.empty or found.about["joined"] > 0
    assert "fewer than 32 neurons fire" in own_network.show_found(found).text
    empty = replace(found, edges=found.edges.iloc[:0])
    assert [text.get_text() for text in own_network.graph_figure(empty).axes[0].texts] == ["No two neurons are joined."]
    assert found.about["name"] == "Sequential"
    assert found.about["class_names"] == ["0", "1"]


def test_tracing_of_memory_by_the_caller_goes_on():
    tracemalloc.start()
    try:
        nb.measure(MLP, IMAGES, twins=1)
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()


def test_small_layers_have_no_graph_and_say_so(trained):
    small = nn.Sequential(nn.Linear(64, 12), nn.Tanh(), nn.Linear(12, 60), nn.Tanh(), nn.Linear(60, 10))
    found = nb.measure(small, *trained[1:], twins=1)
    table = found.table
    assert found.too_small == ["1"]
    assert np.isnan(at(table, "1", "modularity")["value"])
    assert at(table, "1", "modularity")["word"] == "unknown"
    assert np.isfinite(at(table, "3", "modularity")["value"])
    assert np.isfinite(at(table, "1", "active_entropy")["value"])


class Broken(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.relu = nn.Linear(64, 50), nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.relu(torch.log(self.first(x) - 1e9))


IMAGES = np.random.default_rng(0).normal(size=(40, 64)).astype(np.float32)
MLP = nn.Sequential(nn.Linear(64, 50), nn.ReLU(), nn.Linear(50, 3))
CONV = nn.Sequential(nn.Conv2d(1, 40, 3), nn.ReLU())
DEAD = nn.Sequential(nn.Linear(64, 50), nn.ReLU(), nn.Linear(50, 3))
nn.init.constant_(DEAD[0].bias, -1e6)


@pytest.mark.parametrize(
    ("model", "images", "options", "message"),
    [
        (MLP, IMAGES[:, :9], {}, r"images do not fit the model: .*0 \(Linear\), takes 64 features"),
        (MLP, IMAGES[:1], {}, "images must hold at least 20 examples, received 1"),
        (MLP, IMAGES, {"labels": [0, 1]}, "labels must be one for each of 40 images, received 2"),
        (MLP, IMAGES, {"labels": [4] * 40}, "labels must hold at least two classes, received one"),
        (MLP, IMAGES, {"labels": [-1, 1] * 20}, "labels must be numbers of classes from 0 on, received -1"),
        (
            MLP,
            IMAGES,
            {"labels": range(40)},
            "labels must have two images of a class on average, received 40 classes of",
        ),
        (MLP, IMAGES[:1].repeat(40, axis=0), {}, "images must differ, received 40 that are all alike"),
        (MLP, IMAGES, {"factory": "build"}, "factory must be of type .*, received 'build'"),
        (MLP, IMAGES, {"layers": "1 relu"}, "layers: 'relu' matches none of the model's layers"),
        (MLP, np.abs(IMAGES) % 1, {"mean": 0.5, "std": 0}, r"std must be above 0 and finite, received \[0.0\]"),
        (MLP, np.abs(IMAGES) % 1, {"mean": 0.5, "std": float("inf")}, "std must be above 0 and finite"),
        (MLP, IMAGES, {"labels": [5, 10**9] * 20}, "labels must be numbers of classes from 0 on, received 1000000000"),
        (MLP, {"images": IMAGES}, {}, "images must be an array or a tensor, received dict; gather what a loader gives"),
        (nn.Embedding(9, 40), IMAGES.astype(int) % 9, {"mean": 0.5, "std": 1}, "mean and std are for images"),
        (MLP, IMAGES, {"layers": "rellu"}, "layers='rellu' matches none of the model's layers"),
        (MLP, np.abs(IMAGES) % 1, {"mean": 77, "std": 90}, "mean must be that of values from 0 to 1, received"),
        (CONV, IMAGES.reshape(-1, 8, 8), {}, r"images have shape \(40, 8, 8\); add the axis of channels"),
        (MLP, IMAGES, {"reduce": "sum"}, "reduce must be 'mean' or 'max', received 'sum'"),
        (MLP, IMAGES, {"twins": 0}, "twins must be"),
        (DEAD, IMAGES, {}, "no neuron of them fires on these images"),
        (Broken(), IMAGES, {"layers": "relu"}, "layer 'relu' holds .* NaN or infinite activations"),
        ("resnet18", IMAGES, {}, "model must be"),
        (deepcopy(MLP).to("meta"), IMAGES, {}, "model lies on the device 'meta', where tensors have no values"),
        (MLP, torch.from_numpy(IMAGES).to_sparse(), {}, "images must be dense, received a sparse tensor"),
        (MLP, IMAGES.astype(complex), {}, "images must hold real numbers, received dtype complex"),
        (MLP, 3, {}, "images must be an array or a tensor, received int"),
    ],
)
def test_bad_input_is_one_sentence(model, images, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        nb.measure(model, images, **options)


def test_images_of_a_type_that_numpy_does_not_know():
    images = torch.from_numpy(IMAGES).bfloat16()
    narrow, wide = (nb.measure(deepcopy(MLP), one, twins=1).table for one in (images, images.float()))
    pd.testing.assert_frame_equal(narrow, wide)


def test_what_is_saved_is_read_again(found, tmp_path):
    again = Measured.load(found.save(tmp_path / "a folder"))
    for name in TABLES:
        pd.testing.assert_frame_equal(getattr(again, name), getattr(found, name), check_dtype=False)
    assert again.about == found.about
    assert len(pd.read_csv(tmp_path / "a folder" / "table.csv")) == len(found.table)


def beside(found: Measured, **ends: float) -> Measured:
    """The same with other ends of references, and the words that follow."""
    table = found.table.assign(**ends)
    return replace(found, table=table.assign(word=[_word(row) for row in table.itertuples()]))


def test_the_box_says_what_the_word_says(found):
    found.about.update(name="mine", class_names=list("0123456789"))
    assert "more than chance, architecture and noise make" in own_network.show_found(found).text
    other = beside(found, untrained_high=99.0)
    assert "not shown to be more than chance, architecture and noise make" in own_network.show_found(other).text
    below = own_network.show_found(replace(found, table=found.table.assign(word="below"))).text
    assert "less than chance, architecture and noise make" in below
    assert f"luck alone makes one network in {found.about['twins'] + 2} the lowest" in below
    assert "luck" not in own_network.show_found(other).text
    assert "give --mean and --std" not in below
    guessed = {
        **found.about,
        "weights": "mine.pt",
        "accuracy": 0.5,
        "inputs": f"{own_network.GUESSED}, channel by channel",
    }
    assert "give --mean and --std" in own_network.show_found(replace(found, about=guessed)).text
    one = replace(found, layers=found.layers.head(1))
    assert "<summary>1 layer, in the order" in own_network.show_layers(one).text
    many = replace(found, layers=pd.concat([found.layers] * 12, ignore_index=True))
    assert f"<summary>{len(many.layers)} layers, in the order" in own_network.show_layers(many).text
    costs = own_network.show_costs(found).text
    assert "modularity Q, Q beyond chance" in costs
    assert "agreement" not in costs, "names of entries are not for readers"
    assert "linear regions" not in costs, "which nobody counted"
    assert (
        "beyond noise, but not beyond every untrained twin (halves of the images 0."
        in own_network.show_found(other).text
    )
    other = beside(found, noise_high=99.0)
    assert "beyond every untrained twin, but not beyond noise" in own_network.show_found(other).text
    other = beside(found, noise_low=98.0, noise_high=99.0)
    assert "beyond chance, between untrained twins and noise" in own_network.show_found(other).text
    other = beside(found, untrained_high=99.0, noise_high=99.0)
    assert "not beyond every untrained twin, nor noise" in own_network.show_found(other).text
    shown = own_network.show_references(found).text
    assert "networks of this book" in shown
    lines = own_network.layers_figure(found).axes[0].get_yticklabels()
    assert [line.get_text() for line in lines] == ["1", "3", WHOLE]
    assert own_network.graph_figure(found).axes


def test_ranges_are_of_networks_of_the_same_kind(found):
    def with_layers(*layers: tuple[str, str, str]) -> Measured:
        rows = [{**dict(zip(("kind", "shape", "layout"), one, strict=True)), "chosen": True} for one in layers]
        return replace(found, layers=pd.DataFrame(rows))

    unit, channel = ("ReLU", "80", "auto"), ("ReLU", "16x32x32", "channels-first")
    token, state = ("GELU", "65x192", "features-last"), ("LSTM", "20x64", "features-last")
    kinds = {
        "fully connected": [(unit, unit)],
        "convolutional": [(channel, unit), (channel,)],
        "transformer": [(token, unit), (token,)],
        "": [(state,), (token, channel), (("ReLU", "20x64", "channels-first"),)],
    }
    for kind, networks in kinds.items():
        for layers in networks:
            assert own_network.kind_of(with_layers(*layers)) == kind
    shown = {kind: own_network.show_references(with_layers(*networks[0])).text for kind, networks in kinds.items()}
    assert {kind for kind, text in shown.items() if "networks of this book" in text} == set(kinds) - {""}
    assert len(set(shown.values())) == 4, "each kind has ranges of its own"


def test_the_ranges_in_the_package_are_those_of_the_committed_tables():
    told = json.loads(files("nbutils.own").joinpath("ranges.json").read_text("utf-8"))
    found = own_network.book_ranges()
    assert told.keys() == found.keys()
    for kind, ranges in found.items():
        assert told[kind].keys() == ranges.keys()
        for name, ends in ranges.items():
            assert told[kind][name] == pytest.approx(ends, rel=1e-5), "run make glance"
    every = pd.concat(
        [
            answers.values_of(one.tables, answers.sound(one.tables, "small", "true")[0], ["modularity"])
            for one in answering.open_all()
        ]
    )
    inside = every["modularity"].between(*told["fully connected"]["modularity"])
    assert 0.89 < inside.mean() < 0.91


@pytest.mark.slow(20)
def test_the_command_measures_a_network_from_a_file_and_writes_a_page(trained, tmp_path, monkeypatch, capsys):
    model, x, y = trained
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(
        "from torch import nn\n\n\ndef build():\n    return nn.Sequential(nn.Linear(64, 80), nn.ReLU(), "
        "nn.Linear(80, 40), nn.ReLU(), nn.Linear(40, 10))\n",
        "utf-8",
    )
    torch.save({"state_dict": model.state_dict()}, "best.pt")
    np.savez("images.npz", images=x, labels=y)
    options = ["measure", "--model", "mine.py:build", "--weights", "best.pt", "--data", "images.npz", "--twins", "1"]
    assert main(options) == 0
    out = capsys.readouterr().out
    assert "+ 1: 80 neurons, what ReLU makes of 0" in out
    assert "accuracy 0." in out
    folder = Path("measured/mine-py-build")
    assert {path.name for path in folder.iterdir()} == {
        *(f"{name}.parquet" for name in TABLES),
        "table.csv",
        "about.json",
        "page.html",
        "page.ipynb",
    }
    assert json.loads((folder / "about.json").read_text("utf-8"))["twins_made_by"] == "the factory"
    page = (folder / "page.html").read_text("utf-8")
    assert page.count("<svg") - page.count('nb-narrow"') == 2
    assert not any(word in page for word in ('src="http', "<script", "Traceback"))
    assert "more than chance, architecture and noise make" in page
    assert re.search(r"<h1[^>]*>Communities of mine\.py:build<", page)
    assert "How to measure yours" not in page, "who has the report has done so"
    for text in (page, (folder / "page.ipynb").read_text("utf-8")):
        links = re.findall(r"""href=\\?"([^"\\]+)|\]\(([^)\s]+)\)""", text)
        assert {one or other for one, other in links} >= {"https://arxiv.org/abs/2106.04693"}
        assert all((one or other).startswith(("https://", "#", "data:")) for one, other in links), (
            "no link into a folder"
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "nowhere.py:build", "--data", "digits"], "there is no file 'nowhere.py'"),
        (["--model", "torch.nn:ReLU", "--data", "none.npz"], "there is no file none.npz"),
        (["--model", "torch.nn:ReLU", "--data", "mnits"], "'mnits' (did you mean 'mnist'?); or give a file .npz"),
        (["--model", "torch.nn:ReLU", "--data", "digits", "--weights", "w.pt"], "there is no file w.pt"),
        (["--model", "torchvision:resnet18", "--data", "digits"], "takes 3 channels"),
        (["--model", "torch.nn:Identity", "--data", "digits", "--layers", "relu"], "matches none"),
    ],
)
def test_refusals_of_the_command(options, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["measure", *options]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir()), "nothing half-written"


@pytest.mark.parametrize("command", ["measure", "lesion"])
def test_a_place_that_is_no_folder_is_refused_before_anything_is_measured(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("mine.yml").write_text("a: 1\n", "utf-8")
    into = "mine.yml" if command == "measure" else "mine.yml/table.parquet"
    assert main([command, "--model", "torch.nn:Identity", "--data", "digits", "--into", into]) == 2
    assert "--into must lie in a folder that can be written to; mine.yml is none" in capsys.readouterr().err
    assert Path("mine.yml").read_text("utf-8") == "a: 1\n"


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder in which nobody can make one")
def test_a_folder_in_which_none_can_be_made_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["measure", "--model", "torch.nn:Identity", "--data", "digits", "--into", "/proc/nope"]) == 2
    assert "--into must lie in a folder that can be written to; /proc is none" in capsys.readouterr().err


def test_what_an_interrupt_says_is_true(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("def build():\n    raise KeyboardInterrupt\n", "utf-8")
    assert main(["measure", "--model", "mine.py:build", "--data", "digits"]) == 130
    told = capsys.readouterr().err
    assert "interrupted; nothing is written before the end" in told
    assert "kept" not in told
    assert [one.name for one in tmp_path.iterdir() if one.name != "__pycache__"] == ["mine.py"]


def test_outputs_that_are_not_the_classes_are_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(
        "from torch import nn\n\n\ndef build():\n    return nn.Sequential(nn.Linear(64, 80), nn.ReLU(), "
        "nn.Linear(80, 12))\n",
        "utf-8",
    )
    options = ["measure", "--model", "mine.py:build", "--data", "digits", "--images", "60", "--twins", "1", "--no-page"]
    assert main(options) == 0
    assert "The network has 12 outputs, the labels 10 classes: are they the same?" in capsys.readouterr().out


def test_labels_that_do_not_number_the_outputs_give_no_accuracy():
    """A network that is right about every image, under labels from 0 and from 1."""
    model, images = nn.Sequential(nn.Linear(6, 40), nn.ReLU(), nn.Linear(40, 3)), torch.randn(120, 6)
    right = model(images).argmax(dim=1).numpy()
    found = {start: nb.measure(model, images, right + start, twins=1, examples=120) for start in (0, 1)}
    assert found[0].about["accuracy"] == 1
    assert found[0].about["unscored"] == ""
    assert found[1].about["accuracy"] is None
    assert found[1].about["unscored"] == "labels go up to 3, and the outputs are numbered from 0 to 2"
    assert "probe_accuracy" in set(found[0].table["measure"])
    assert "probe_accuracy" not in set(found[1].table["measure"])
    assert "linear_probe" in set(found[1].table["measure"])


def test_weights_that_are_no_numbers_are_named():
    model = nn.Sequential(nn.Linear(6, 40), nn.ReLU(), nn.Linear(40, 3))
    with torch.no_grad():
        model[2].weight[1, :5] = float("nan")
    with pytest.raises(ValueError, match=r"model holds 5 NaN or infinite weights in '2\.weight'"):
        nb.measure(model, torch.randn(50, 6), twins=1)
