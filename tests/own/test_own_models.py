"""Models by name, weights from files, and twins that were never trained."""

from __future__ import annotations

import io
import pickle
import random
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import nn
from torch.nn.utils import prune

from nbutils.capturing.hooks import capture_activations
from nbutils.own.images import StoredRows, as_inputs, chosen_examples, expected, load_images, noise_like
from nbutils.own.models import as_module, draws_all, load_factory, load_weights, untrained_twin
from nbutils.pages.own_network import GUESSED
from nbutils.runs.models import build_model
from nbutils.support.messages import is_plain

FACTORY = """
from torch import nn

def build():
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3))

def needs(size):
    return build()

number = 3
made = nn.Linear(2, 2)

def text():
    return "no module"
"""


@pytest.fixture
def factory(tmp_path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(FACTORY, "utf-8")
    return path


def test_models_by_name(factory):
    assert [type(one).__name__ for one in load_factory(f"{factory}:build")()] == [
        "Linear",
        "BatchNorm1d",
        "ReLU",
        "Linear",
    ]
    assert isinstance(load_factory("torch.nn:ReLU")(), nn.ReLU)
    assert type(load_factory("torchvision:resnet18")()).__name__ == "ResNet"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("resnet18", "model must be package.module:factory, file.py:factory or torchvision:name, received 'resnet18'"),
        ("no.such.place:build", "cannot be imported: ModuleNotFoundError"),
        ("nowhere.py:build", "there is no file 'nowhere.py'"),
        ("{factory}:bild", "has no factory 'bild' .did you mean 'build'"),
        ("{factory}:number", "number of .* is int, not a function or class that makes a model"),
        ("{factory}:made", "made of .* is Linear, not a function or class that makes a model"),
        ("{factory}:needs", r"needs\(\) of .* failed, it is called without arguments: TypeError"),
        ("{factory}:text", "model must be a PyTorch module, received str"),
    ],
)
def test_models_that_are_none(factory, name, message):
    with pytest.raises(ValueError, match=message):
        load_factory(name.format(factory=factory))()


def test_wrappers_are_taken_off():
    model = nn.Linear(2, 2)
    assert as_module(nn.DataParallel(model)) is model
    assert as_module(torch.compile(model)) is model
    with pytest.raises(ValueError, match="received dict"):
        as_module({})


@pytest.mark.parametrize("prefix", ["", "module.", "_orig_mod."])
@pytest.mark.parametrize("kind", ["safetensors", "plain", "nested"])
def test_weights_of_every_kind_fit(factory, tmp_path, prefix, kind):
    saved, model = load_factory(f"{factory}:build")(), load_factory(f"{factory}:build")()
    state = {f"{prefix}{name}": value for name, value in saved.state_dict().items()}
    path = tmp_path / ("w.safetensors" if kind == "safetensors" else "w.pt")
    if kind == "safetensors":
        save_file({name: value for name, value in state.items() if "num_batches" not in name}, path)
    else:
        torch.save(state if kind == "plain" else {"epoch": 3, "state_dict": state}, path)
    load_weights(model, path)
    assert all((model.state_dict()[name] == value).all() for name, value in saved.state_dict().items())


def test_weights_that_do_not_fit_are_named_and_change_nothing(factory, tmp_path):
    model = load_factory(f"{factory}:build")()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = {**model.state_dict(), "extra.weight": torch.zeros(1), "3.weight": torch.zeros(9, 9)}
    del state["0.bias"]
    torch.save(state, tmp_path / "w.pt")
    sentence = (
        r"the model lacks 1: extra.weight; the file lacks 1: 0.bias; of another shape or kind of number 1: "
        r"3.weight \(9, 9\) for \(3, 6\)"
    )
    with pytest.raises(ValueError, match=sentence):
        load_weights(model, tmp_path / "w.pt")
    assert all((before[name] == value).all() for name, value in model.state_dict().items())


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(7, 4), nn.Linear(4, 7, bias=False)
        self.head.weight = self.embed.weight


def test_two_wrappers_tied_weights_and_other_numbers(factory, tmp_path):
    saved, model = load_factory(f"{factory}:build")(), load_factory(f"{factory}:build")()
    torch.save({f"model.module.{name}": value for name, value in saved.state_dict().items()}, tmp_path / "two.pt")
    load_weights(model, tmp_path / "two.pt")
    assert torch.equal(model[3].weight, saved[3].weight)
    known, tied = Tied(), Tied()
    save_file({"embed.weight": known.embed.weight.detach()}, tmp_path / "tied.safetensors")
    load_weights(tied, tmp_path / "tied.safetensors")
    assert torch.equal(tied.head.weight, known.embed.weight)
    torch.save({name: value.to(torch.int8) for name, value in known.state_dict().items()}, tmp_path / "small.pt")
    with pytest.raises(ValueError, match=r"kind of number 2: embed.weight \(7, 4\) int8 for \(7, 4\)"):
        load_weights(tied, tmp_path / "small.pt")


@pytest.mark.parametrize("kind", ["pt", "safetensors"])
def test_damage_of_every_kind_is_one_sentence(kind, tmp_path, rng):
    model, path = nn.Linear(6, 9), tmp_path / f"w.{kind}"
    (torch.save if kind == "pt" else save_file)(model.state_dict(), path)
    whole, sentences = path.read_bytes(), []
    for _ in range(60):
        content = bytearray(whole)
        for place in rng.integers(len(whole), size=3):
            content[place] = rng.integers(256)
        path.write_bytes(content[: rng.integers(1, len(whole) + 1)])
        try:
            load_weights(model, path)
        except ValueError as error:
            sentences.append(str(error))
    assert len(sentences) > 30
    assert all(sentence.startswith("weights: ") for sentence in sentences)


class Harmful:
    def __reduce__(self):
        return (Path.touch, (Path("harmed"),))


def test_files_execute_nothing_and_damage_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = nn.Linear(2, 2)
    (tmp_path / "bad.pt").write_bytes(pickle.dumps({"weight": Harmful()}))
    torch.save({"weight": Harmful()}, tmp_path / "worse.pt")
    (tmp_path / "short.safetensors").write_bytes(b"\x08\0\0\0")
    torch.save([1, 2], tmp_path / "list.pt")
    torch.save(model, tmp_path / "whole.pt")
    (tmp_path / "cut.pt").write_bytes((tmp_path / "whole.pt").read_bytes()[:500])
    for name, word in (
        ("bad.pt", "damaged"),
        ("worse.pt", r"holds more than weights \(.*\), and code in files is never run"),
        (
            "whole.pt",
            "holds more than weights .'torch.nn.modules.linear.Linear'., and code in files is never run; where",
        ),
        ("cut.pt", "damaged"),
        ("short.safetensors", "damaged"),
        ("list.pt", "no weights"),
    ):
        with pytest.raises(ValueError, match=word) as refusal:
            load_weights(model, tmp_path / name)
        assert is_plain(str(refusal.value)), "no signs that act on a terminal"
        assert "weights_only" not in str(refusal.value), "no advice to run it all the same"
    assert not (tmp_path / "harmed").exists()
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_weights(model, tmp_path / "none.pt")


class WithToken(nn.Module):
    """A parameter of its own, which no layer can draw."""

    def __init__(self) -> None:
        super().__init__()
        self.token, self.linear = nn.Parameter(torch.full((50, 40), 3.0)), nn.Linear(4, 40)
        self.norm = nn.BatchNorm1d(40)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm(self.linear(x)) + self.token.mean(dim=0))


def test_a_twin_has_other_weights_of_the_same_kind_and_the_model_stays():
    torch.manual_seed(0)
    model, x = WithToken(), torch.randn(200, 4)
    with torch.no_grad():
        model.linear.weight.mul_(100)
        model.token.add_(torch.randn_like(model.token))
        model.train()(10 * x)  # its norm has seen something
    before = {name: value.clone() for name, value in model.state_dict().items()}
    twins = [untrained_twin(model, x, seed) for seed in (0, 0, 1)]
    assert all((before[name] == value).all() for name, value in model.state_dict().items())
    assert twins[0].linear.weight.abs().max() <= 0.5, "PyTorch draws a Linear of 4 inputs from -1/2 to 1/2"
    assert (twins[0].linear.weight == twins[1].linear.weight).all()
    assert not (twins[0].linear.weight == twins[2].linear.weight).any()
    assert twins[0].token.mean().item() == pytest.approx(3, abs=0.1)
    assert twins[0].token.std().item() == pytest.approx(1, abs=0.1)
    given = twins[0].linear(x)
    assert torch.allclose(twins[0].norm.running_mean, given.mean(dim=0), atol=1e-5)
    assert not twins[0].training


def test_the_twin_of_a_network_whose_normalisation_has_seen_nothing_has_seen_nothing_either():
    """Else an untrained network would be told apart from its twins by that alone."""
    twin = untrained_twin(WithToken(), torch.randn(200, 4), 0)
    assert not twin.norm.running_mean.any()
    assert (twin.norm.running_var == 1).all()


def test_inputs_as_a_network_takes_them(rng):
    mlp, conv = build_model("mlp:5", 12, 3), nn.Sequential(nn.Conv2d(3, 4, 1))
    images = rng.integers(256, size=(30, 3, 2, 2), dtype=np.uint8)
    scaled, how = as_inputs(conv, images, [0.5, 0.5, 0.5], [0.25])
    assert scaled.numpy() == pytest.approx((images / 255 - 0.5) / 0.25, abs=1e-5)
    assert how == "minus the mean and divided by the deviation that were given"
    standard, how = as_inputs(mlp, images)
    assert how.startswith(GUESSED), "what the page looks for"
    assert standard.shape == (30, 12)
    assert how.endswith("; in a row")
    assert standard.reshape(30, 3, 4).mean(dim=(0, 2)).abs().max() < 1e-5
    assert as_inputs(conv, images / 255)[0].numpy() == pytest.approx((images / 255).astype(np.float32))
    assert (as_inputs(nn.Embedding(9, 2), images[:, :, 0, 0])[0].numpy() == images[:, :, 0, 0]).all()
    for options, message in (
        ({"mean": [0.5]}, "mean and std go together"),
        ({"mean": [0.5, 0.5], "std": [1]}, "mean must be one number or 3, one per channel"),
        ({"mean": [0.5], "std": [0]}, "std must be above 0"),
    ):
        with pytest.raises(ValueError, match=message):
            as_inputs(conv, images, **options)
    with pytest.raises(ValueError, match="images range up to 2"):
        as_inputs(conv, images.astype(float), [0.5], [0.5])
    with pytest.raises(
        ValueError, match="images range from 0 to 65025, and numbers are shown to the model as they are"
    ):
        as_inputs(conv, images * np.float32(255))
    assert as_inputs(conv, images / np.float32(255))[1] == "as they are, from 0 to 1"
    with pytest.raises(ValueError, match="1 NaN or infinite"):
        as_inputs(mlp, np.array([[np.nan, 1.0]]))
    assert expected(nn.ReLU()) == "it has no layer that says what it takes"


class Numbered(nn.Module):
    """Images, beside a table of positions that is registered first, as in vision transformers; or tokens."""

    def __init__(self, tokens: bool) -> None:
        super().__init__()
        self.places, self.head = nn.Embedding(12, 4), nn.Linear(12, 4)
        self.first = nn.Embedding(256, 4) if tokens else nn.Linear(1, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x if isinstance(self.first, nn.Embedding) else x.flatten(1)[..., None])
        return self.head((x + self.places.weight).mean(dim=2))


def test_bytes_beside_an_embedding_are_images_unless_it_takes_them(rng):
    images = rng.integers(256, size=(30, 3, 2, 2), dtype=np.uint8)
    for shape in ((30, 3, 2, 2), (30, 12)):
        inputs, how = as_inputs(Numbered(tokens=False), images.reshape(shape), [0.5], [0.5])
        assert how.startswith("minus the mean")
        assert inputs.shape == shape
        assert inputs.is_floating_point()
    tokens, how = as_inputs(Numbered(tokens=True), images.reshape(30, 12))
    assert (tokens.numpy() == images.reshape(30, 12)).all()
    assert how == "as they are, token numbers"
    with pytest.raises(ValueError, match="mean and std are for images"):
        as_inputs(Numbered(tokens=True), images.reshape(30, 12), [0.5], [0.5])
    model = nn.Sequential(nn.Conv2d(3, 4, 1))
    model.register_module("unused", nn.Embedding(3, 2))
    model.forward = lambda x: model[0](x)
    assert capture_activations(model, images, "0")["0"].shape == (30, 4)


class Backwards(nn.Module):
    """Its layers are registered in another order than that in which they run."""

    def __init__(self) -> None:
        super().__init__()
        self.head, self.body = nn.Linear(32, 3), nn.ConvTranspose2d(2, 2, 2, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.body(x)).flatten(1))


def test_images_lie_in_a_row_only_for_models_that_take_them_so(rng):
    images = rng.normal(size=(30, 2, 2, 2))
    assert as_inputs(Backwards(), images)[0].shape == (30, 2, 2, 2)
    wide = rng.normal(size=(30, 2, 4, 4))
    assert as_inputs(nn.Sequential(nn.Linear(32, 3)), wide)[0].shape == (30, 32)
    assert as_inputs(nn.Sequential(nn.Linear(32, 3)), wide.reshape(30, 1, 1, 32))[0].shape == (30, 32)


def test_noise_keeps_means_and_deviations_and_tokens():
    torch.manual_seed(0)
    x = torch.randn(500, 2, 8, 8) * torch.tensor([1.0, 3.0])[:, None, None] + torch.tensor([0.0, 5.0])[:, None, None]
    noise = noise_like(x, 1)
    assert torch.allclose(noise.mean(dim=(0, 2, 3)), x.mean(dim=(0, 2, 3)), atol=0.1)
    assert torch.allclose(noise.std(dim=(0, 2, 3)), x.std(dim=(0, 2, 3)), rtol=0.05)
    tokens = torch.randint(9, (40, 5))
    dealt = noise_like(tokens, 1)
    assert (dealt.flatten().sort().values == tokens.flatten().sort().values).all()
    assert not (dealt == tokens).all()


def test_images_of_files(tmp_path):
    values = np.zeros((25, 4), np.float32)
    np.savez(tmp_path / "a.npz", images=values, labels=np.arange(25) % 3)
    found = load_images(str(tmp_path / "a.npz"))
    assert (found.values.shape, found.classes) == ((25, 4), ("0", "1", "2"))
    np.savez(tmp_path / "b.npz", pictures=values)
    np.savez(tmp_path / "c.npz", images=np.array([{}], object))
    (tmp_path / "d.npz").write_bytes(b"PK\x03\x04 no archive")
    for name, message in (("b", "must hold an array 'images', it holds pictures"), ("c", "damaged"), ("d", "damaged")):
        with pytest.raises(ValueError, match=message):
            load_images(str(tmp_path / f"{name}.npz"))
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_images(str(tmp_path / "e.npz"))


def test_rows_of_a_file_are_those_of_the_array(tmp_path, rng, monkeypatch):
    monkeypatch.setattr("nbutils.own.images.BLOCK", 200)
    arrays = {
        "pictures": rng.integers(256, size=(90, 3, 4, 4), dtype=np.uint8),
        "rows": rng.normal(size=(90, 7)),
        "by_columns": np.asfortranarray(rng.normal(size=(90, 7)).astype(">f4")),
        "flat": np.arange(90),
        "half": rng.normal(size=(90, 600)).astype(np.float16),  # a row is larger than a block
    }
    chosen = np.sort(rng.permutation(90)[:40])
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", **arrays)
        for name, values in arrays.items():
            stored = StoredRows(tmp_path / "a.npz", name)
            assert (stored.shape, stored.dtype, len(stored)) == (values.shape, values.dtype, 90)
            for rows in (chosen, np.arange(90), [89], []):
                found = stored[np.asarray(rows, int)]
                assert (found == values[np.asarray(rows, int)]).all()
                assert found.dtype == values.dtype


def test_damage_to_a_file_of_images_is_noticed(tmp_path, rng):
    file = tmp_path / "a.npz"
    np.savez(file, images=rng.integers(256, size=(60, 5000), dtype=np.uint8))
    whole = file.read_bytes()
    for place in (len(whole) // 4, len(whole) // 2):  # in the values, of which the archive keeps a sum
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(ValueError, match=r"a\.npz is damaged: Bad CRC"):
            load_images(str(file)).values[np.arange(3)]
    with zipfile.ZipFile(file, "w") as archive:
        content = io.BytesIO()
        np.lib.format.write_array_header_1_0(content, {"descr": "|u1", "fortran_order": False, "shape": (60, 10**12)})
        archive.writestr("images.npy", content.getvalue() + bytes(100))
    with pytest.raises(ValueError, match=r"shape \(60, 1000000000000\) and 100 bytes, which do not fit"):
        load_images(str(file))


def test_memory_does_not_grow_with_the_file(tmp_path):
    np.savez_compressed(tmp_path / "many.npz", images=np.ones((60_000, 64), np.float32), labels=np.arange(60_000) % 5)
    images = load_images(str(tmp_path / "many.npz"))
    tracemalloc.start()
    kept = images.values[chosen_examples(len(images.values), images.labels, 100)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert kept.shape == (100, 64)
    assert peak < 5 * 2**20 < 60_000 * 64 * 4, "blocks of 1 MiB, of 15"


def test_examples_are_drawn_class_by_class():
    labels = np.repeat([0, 1, 2], [60, 20, 20])
    assert np.bincount(labels[chosen_examples(100, labels, 30)]).tolist() == [10, 10, 10]


def wide():
    """Weights drawn otherwise than `reset_parameters` would: three times as far from 0."""
    model = nn.Sequential(nn.Linear(50, 40), nn.ReLU(), nn.Linear(40, 3))
    with torch.no_grad():
        model[0].weight.mul_(3)
    return model


def test_a_factory_makes_the_twins_as_the_model_began():
    model, inputs = wide(), torch.zeros(5, 50)
    own = model[0].weight.std().item()
    made = [untrained_twin(model, inputs, seed, wide)[0].weight.detach() for seed in (0, 0, 1)]
    assert torch.equal(made[0], made[1])
    assert not torch.equal(made[0], made[2])
    assert made[0].std().item() == pytest.approx(own, rel=0.1)
    assert untrained_twin(model, inputs, 0)[0].weight.std().item() == pytest.approx(own / 3, rel=0.1)


def test_twins_of_a_factory_see_what_batch_normalisation_saw(factory):
    make = load_factory(f"{factory}:build")
    model, inputs = make(), torch.randn(256, 4) * 5 + 3
    assert untrained_twin(model, inputs, 0, make)[1].running_mean.abs().max() == 0, "the model has seen nothing, too"
    model.train()
    model(inputs)
    twin = untrained_twin(model.eval(), inputs, 0, make)
    assert torch.allclose(twin[1].running_mean, twin[0](inputs).mean(dim=0), atol=1e-4)


def test_a_factory_that_reads_weights_makes_no_twins():
    kept = nn.Linear(4, 3)

    def loaded():
        model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
        model[0].load_state_dict(kept.state_dict())
        return model

    assert not draws_all(loaded, loaded()), "a part is read"
    assert not draws_all(lambda: kept, kept)
    assert draws_all(wide, wide())
    assert draws_all(lambda: nn.BatchNorm1d(3), nn.BatchNorm1d(3)), "what is constant is not drawn by anybody"


@pytest.mark.parametrize(
    "altered",
    [
        lambda layer: prune.l1_unstructured(layer, "weight", 0.3),
        nn.utils.weight_norm,
        nn.utils.spectral_norm,
        nn.utils.parametrizations.weight_norm,
        nn.utils.parametrizations.orthogonal,
    ],
    ids=["pruned", "weight_norm", "spectral_norm", "parametrised weight_norm", "orthogonal"],
)
@pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated")
def test_twins_of_reparametrised_layers_are_no_copies(altered):
    torch.manual_seed(5)
    model, inputs = (
        nn.Sequential(nn.Linear(20, 40, bias=False), nn.ReLU(), nn.Linear(40, 4, bias=False)),
        torch.randn(60, 20),
    )
    for place in (0, 2):
        altered(model[place])
    with torch.no_grad():
        own, twin = model(inputs), untrained_twin(model, inputs, 0)(inputs)
    assert not torch.allclose(own, twin, atol=1e-3)
    assert twin.std() > 0.1 * own.std(), "its weights are not all 0"
    assert abs(np.corrcoef(own.ravel(), twin.ravel())[0, 1]) < 0.5


def test_numbers_of_every_generator_are_drawn_by_the_seed_and_go_on_as_before():
    def made():
        model = nn.Linear(3, 2)
        nn.init.constant_(model.bias, np.random.normal() + random.random())
        return model

    np.random.seed(3)
    random.seed(3)
    before = np.random.get_state()[1].copy(), random.getstate()
    twins = [untrained_twin(made(), torch.zeros(5, 3), 8, made) for _ in range(2)]
    np.random.seed(3)
    random.seed(3)
    made(), made()
    after = np.random.get_state()[1].copy(), random.getstate()
    np.random.seed(3)
    random.seed(3)
    [untrained_twin(model, torch.zeros(5, 3), 8, made) for model in (made(), made())]
    assert (np.random.get_state()[1] == after[0]).all()
    assert random.getstate() == after[1] != before[1]
    assert torch.equal(twins[0].bias, twins[1].bias)


def test_a_module_that_must_be_told_how_to_draw_is_drawn_otherwise():
    class Told(nn.Linear):
        def reset_parameters(self, std: float = 1.0, *, scale: float | None = None) -> None:
            nn.init.normal_(self.weight, std=std)

        def must(self) -> None:
            self.reset_parameters = lambda std: None  # which cannot be called without it

    model = Told(30, 40, bias=False)
    model.must()
    twin = untrained_twin(model, torch.zeros(5, 30), 0)
    assert not torch.equal(twin.weight, model.weight)
    assert twin.weight.std().item() == pytest.approx(model.weight.std().item(), rel=0.1)


def test_a_file_may_hold_dataclasses_and_import_what_lies_beside_it(tmp_path):
    (tmp_path / "sizes_of_mine.py").write_text("WIDTH = 7\n", "utf-8")
    (tmp_path / "net.py").write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\nfrom torch import nn\n"
        "import sizes_of_mine\n\n\n@dataclass\nclass Config:\n    width: int = sizes_of_mine.WIDTH\n\n\n"
        "def build():\n    return nn.Linear(Config().width, 2)\n",
        "utf-8",
    )
    path = list(sys.path)
    assert load_factory(f"{tmp_path / 'net.py'}:build")().in_features == 7
    assert sys.path == path


@pytest.mark.parametrize("text", ["import sys\nsys.exit(3)\n", "import sys\n\ndef build():\n    sys.exit()\n"])
def test_a_file_that_ends_the_program_is_told(text, tmp_path):
    path = tmp_path / "script.py"
    path.write_text(text, "utf-8")
    with pytest.raises(ValueError, match="SystemExit"):
        load_factory(f"{path}:build")()


def test_one_example_more_than_a_batch():
    model = nn.Sequential(nn.Linear(5, 30), nn.BatchNorm1d(30), nn.ReLU(), nn.Linear(30, 3))
    model(torch.randn(50, 5))
    for examples in (2, 256, 257, 512, 513):
        twin = untrained_twin(model.eval(), torch.randn(examples, 5), 0)
        assert twin[1].running_var.isfinite().all()


def test_a_folder_with_few_test_images_says_how_many_there_are(tmp_path, rng):
    for kind in ("a", "b"):
        (tmp_path / "few" / kind).mkdir(parents=True)
        for number in range(20):
            pixels = rng.integers(256, size=(8, 8), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "few" / kind / f"{number}.png")
    with pytest.raises(ValueError, match=r"has \d+ test images of 40, and at least 20 are needed; an \.npz"):
        load_images(f"folder:{tmp_path / 'few'}")
