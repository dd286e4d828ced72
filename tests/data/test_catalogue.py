from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import re
import subprocess
import sys
import tarfile
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from nbutils.data import catalogue, sources
from nbutils.data.catalogue import keep_images, parse_name
from nbutils.data.datasets import DATASETS, load_dataset
from nbutils.data.pictures import torchvision_datasets
from nbutils.data.sources import SOURCES, data_folder, read_cifar_batches, read_idx
from nbutils.support import store
from nbutils.support.store import Store

THERE = [name for name, source in SOURCES.items() if source.files(data_folder())]


@pytest.fixture
def pictures(tmp_path) -> Path:
    rng = np.random.default_rng(0)
    for split, count in (("train", 4), ("test", 2)):
        for group in ("cats", "dogs"):
            folder = tmp_path / "my pictures" / split / group
            folder.mkdir(parents=True)
            for number in range(count):
                Image.fromarray(rng.integers(256, size=(8, 8, 3), dtype=np.uint8)).save(folder / f"{number}.png")
    return tmp_path / "my pictures"


@pytest.mark.parametrize(
    "name",
    [
        "mnist@28",
        "plantvillage@32",
        "folder:a b/c",
        "folder:x@8",
        "folder:x@8@colour",
        "digits",
        "mnist-10k",
        "cifar10-1k@16",
    ],
)
def test_names(name):
    assert parse_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "mnsit",
        "mnist@0",
        "mnist@big",
        "digits@8",
        "mnist@28@grey",
        "folder:",
        "",
        "../mnist",
        "mnist-0k",
        "mnist-1k-2k-3k",
        "digits-1k",
        None,
        3,
    ],
)
def test_other_names_are_refused(name):
    with pytest.raises(ValueError, match=f"dataset must be one of {', '.join(DATASETS)}"):
        parse_name(name)


GREY = ("mnist", "fashion-mnist", "kmnist")
LARGE = [name for name in THERE if name in ("cifar10", "plantvillage")]


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.release) if n in LARGE else n for n in THERE])
def test_public_data_sets_are_whole(name):
    data = load_dataset(name)
    known = {"cifar10": (32, 32, 3), "plantvillage": (64, 64, 3)} | dict.fromkeys(GREY, (28, 28))
    assert data.image_shape == known.get(name, data.image_shape)
    assert data.train_pixels.shape == (len(data.train_labels), np.prod(data.image_shape))
    assert data.train_pixels.dtype == data.test_pixels.dtype == np.uint8
    if SOURCES[name].labels:
        assert tuple(np.bincount(data.train_true)) == SOURCES[name].labels[0]
        assert tuple(np.bincount(data.test_labels)) == SOURCES[name].labels[1]
    mean = {"mnist": 0.1307, "fashion-mnist": 0.2860}.get(name)  # as published
    if mean:
        assert data.train_pixels.mean() / 255 == pytest.approx(mean, abs=1e-4)
    assert data.licence
    assert data.citation
    assert data.origin


@pytest.mark.skipif("mnist" not in THERE, reason="MNIST is not on this machine")
def test_mnist_is_what_its_files_hold():
    """Against the publisher's format read by hand: 16 bytes of header, then pixels."""
    raw = data_folder() / "MNIST" / "raw"
    pixels = np.frombuffer(gzip.decompress((raw / "t10k-images-idx3-ubyte.gz").read_bytes()), np.uint8, offset=16)
    labels = np.frombuffer(gzip.decompress((raw / "t10k-labels-idx1-ubyte.gz").read_bytes()), np.uint8, offset=8)
    data = load_dataset("mnist")
    assert (data.test_pixels.ravel() == pixels).all()
    assert (data.test_labels == labels).all()


def test_a_folder_of_one_s_own(pictures, own_store):
    data = load_dataset(f"folder:{pictures}")
    assert (data.train_pixels.shape, data.test_pixels.shape) == ((8, 192), (4, 192))
    assert data.classes == ("cats", "dogs")
    first = np.asarray(Image.open(pictures / "train/cats/0.png"))
    assert any((image.reshape(8, 8, 3) == first).all() for image in data.train_pixels)
    assert load_dataset(f"folder:{pictures}@4@grey").train_pixels.shape == (8, 16)
    assert load_dataset(f"folder:{pictures}@4@grey").version != data.version
    with pytest.raises(FileNotFoundError, match="there is no folder /nowhere"):
        load_dataset("folder:/nowhere")


def test_images_are_decoded_once_and_again_when_files_change(pictures, own_store, monkeypatch):
    name = f"folder:{pictures}"
    first = keep_images(name)
    original, calls = catalogue._decode, []
    monkeypatch.setattr(catalogue, "_decode", lambda *given: calls.append(1) or original(*given))
    assert keep_images(name).version == first.version
    assert not calls
    (pictures / "train/cats/0.png").write_bytes((pictures / "train/dogs/1.png").read_bytes())
    os.utime(pictures / "train/cats/0.png", ns=(1, 1))
    assert keep_images(name).version != first.version
    assert calls == [1]


def flip_a_pixel(folder):
    content = bytearray((folder / "train.npy").read_bytes())
    content[-1] ^= 1
    (folder / "train.npy").write_bytes(content)


def flip_a_label(folder):
    content = bytearray((folder / "test_labels.npy").read_bytes())
    content[-8] ^= 1
    (folder / "test_labels.npy").write_bytes(content)


def cut_off(folder):
    (folder / "train.npy").write_bytes((folder / "train.npy").read_bytes()[:100])


def turn_the_shape_round(folder):
    content = (folder / "train.npy").read_bytes()
    (folder / "train.npy").write_bytes(content.replace(b"(8, 8, 8, 3)", b"(8, 8, 3, 8)"))


def lose_the_record(folder):
    (folder / "record.json").unlink()


def change_a_checksum(folder):
    text = (folder / "record.json").read_text()
    known = str(json.loads(text)["checksums"]["train.npy"])
    (folder / "record.json").write_text(text.replace(known, str(int(known) ^ 1)))


@pytest.mark.filterwarnings("ignore:stored result")
@pytest.mark.parametrize(
    "damage", [flip_a_pixel, flip_a_label, cut_off, turn_the_shape_round, lose_the_record, change_a_checksum]
)
def test_a_damaged_array_is_decoded_again(pictures, own_store, damage):
    name = f"folder:{pictures}"
    images = keep_images(name).images
    expected = {part: np.array(getattr(images, part)) for part in catalogue.ARRAYS}
    folder = next(own_store.rglob("train.npy")).parent
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    damage(folder)
    assert before != {path.name: path.read_bytes() for path in folder.iterdir()}
    images = keep_images(name).images
    assert all(np.array_equal(getattr(images, part), expected[part]) for part in catalogue.ARRAYS)
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}


def test_what_is_damaged_and_cannot_be_replaced_is_named(pictures, own_store, monkeypatch):
    name = f"folder:{pictures}"
    keep_images(name)
    folder = next(own_store.rglob("train.npy")).parent
    flip_a_pixel(folder)
    monkeypatch.setattr(
        "nbutils.support.store.shutil.rmtree", lambda *_args, **_options: None
    )  # as in a read-only folder
    with pytest.warns(RuntimeWarning, match="damaged"), pytest.raises(OSError, match=f"delete {folder}"):
        keep_images(name)


def test_a_checksum_is_compared_once(pictures, own_store, monkeypatch):
    name, compared = f"folder:{pictures}", []
    original = store._checksum
    keep_images(name)
    monkeypatch.setattr(store, "_checksum", lambda path: compared.append(path.name) or original(path))
    keep_images(name)
    assert compared == []
    file = next(own_store.rglob("train.npy"))
    os.utime(file, ns=(1, 1))
    keep_images(name)
    assert compared == ["train.npy"]


def test_missing_data_says_what_to_do(tmp_path, own_store, monkeypatch):
    monkeypatch.setenv("NBUTILS_DATA", str(tmp_path / "data"))

    def no_network(_folder: Path) -> None:
        raise OSError("no network here\nor there")

    monkeypatch.setitem(SOURCES, "mnist", replace(SOURCES["mnist"], fetch=no_network))
    with pytest.raises(FileNotFoundError) as caught:
        keep_images("mnist")
    for words in (
        str(tmp_path / "data"),
        "the download failed: no network here or there. ",
        "MNIST/raw/train-images",
        "NBUTILS_DATA",
    ):
        assert words in str(caught.value)
    with pytest.raises(FileNotFoundError, match=r"'plantvillage' is not in .*, and it is not offered for download"):
        keep_images("plantvillage")


def idx(folder: Path, images: int = 3, compress: bool = False) -> None:
    """Tiny files in the format of MNIST."""
    folder.mkdir(parents=True)
    for split in ("train", "t10k"):
        pixels = b"\x00\x00\x08\x03" + b"".join(n.to_bytes(4, "big") for n in (images, 28, 28)) + bytes(images * 784)
        labels = b"\x00\x00\x08\x01" + images.to_bytes(4, "big") + bytes(range(images))
        for name, content in ((f"{split}-images-idx3-ubyte", pixels), (f"{split}-labels-idx1-ubyte", labels)):
            file = folder / (f"{name}.gz" if compress else name)
            file.write_bytes(gzip.compress(content) if compress else content)


def test_unpacked_files_are_read_too_and_oddly_many_images_refused(tmp_path, own_store, monkeypatch):
    monkeypatch.setenv("NBUTILS_DATA", str(tmp_path))
    idx(tmp_path / "MNIST/raw")
    with pytest.raises(ValueError, match=r"holds 3 \+ 3 images, not as many of each class as MNIST has"):
        keep_images("mnist")
    monkeypatch.setitem(SOURCES, "mnist", replace(SOURCES["mnist"], labels=None))
    assert keep_images("mnist").images.train.shape == (3, 28, 28)
    file = tmp_path / "MNIST/raw/train-images-idx3-ubyte"
    file.write_bytes(file.read_bytes()[:500])
    with pytest.raises(ValueError, match="cannot be read as MNIST"):
        keep_images("mnist")


def test_a_wrong_checksum_is_named(tmp_path, own_store, monkeypatch):
    monkeypatch.setenv("NBUTILS_DATA", str(tmp_path))
    idx(tmp_path / "MNIST/raw", compress=True)
    with pytest.raises(ValueError, match=r"ubyte\.gz is damaged: its MD5 is .*; replace it"):
        keep_images("mnist")


def batches(file: Path, change: dict | None = None, leave_out: str = "") -> dict[str, np.ndarray]:
    """An archive in the format of CIFAR-10's, two images a batch."""
    rng, pixels = np.random.default_rng(1), {}
    with tarfile.open(file, "w:gz") as content:
        for name in [*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]:
            pixels[name] = rng.integers(256, size=(2, 3072), dtype=np.uint8)
            batch = {b"data": pixels[name], b"labels": [3, 5], b"batch_label": b"x"} | (change or {})
            if name != leave_out:
                data = pickle.dumps(batch, protocol=2)
                info = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
                info.size = len(data)
                content.addfile(info, io.BytesIO(data))
    return pixels


def test_cifar_batches_give_rows_of_colour(tmp_path):
    pixels = batches(tmp_path / "c.tar.gz")
    found = read_cifar_batches(tmp_path / "c.tar.gz")
    assert found.train.shape == (10, 32, 32, 3)
    assert found.train_labels.tolist() == [3, 5] * 5
    assert (found.test[1, 4, 7] == pixels["test_batch"][1].reshape(3, 32, 32)[:, 4, 7]).all()
    assert found.classes[3] == "cat"


@pytest.fixture
def serve():
    """Serves folders over HTTP on this machine; gives the port."""
    servers = []

    def start(folder: Path) -> int:
        handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), handler))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return servers[-1].server_port

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_what_is_missing_is_downloaded_and_checked(tmp_path, own_store, monkeypatch, serve):
    """From an address of this machine, with the sum of the archive that lies there, and then with another."""
    archive = tmp_path / "server" / "cifar-10-python.tar.gz"
    archive.parent.mkdir()
    pixels = batches(archive)
    official = torchvision_datasets().CIFAR10
    address = f"http://127.0.0.1:{serve(archive.parent)}/{archive.name}"
    monkeypatch.setattr(official, "url", address)
    monkeypatch.setattr(official, "tgz_md5", sources.md5(archive))
    monkeypatch.setitem(SOURCES, "cifar10", replace(SOURCES["cifar10"], labels=None))
    monkeypatch.setenv("NBUTILS_DATA", str(tmp_path / "fresh"))
    found = keep_images("cifar10")
    assert (found.images.test.transpose(0, 3, 1, 2).reshape(2, -1) == pixels["test_batch"]).all()
    assert (tmp_path / "fresh" / archive.name).is_file()
    monkeypatch.setenv("NBUTILS_DATA", str(tmp_path / "other"))
    monkeypatch.setattr(official, "tgz_md5", "0" * 32)
    with pytest.raises(FileNotFoundError, match="the download failed"):
        keep_images("cifar10")
    assert not list((tmp_path / "other").iterdir())


class Malicious:
    def __reduce__(self):
        return os.system, ("echo harm > harm.txt",)


def test_a_pickle_cannot_execute_anything(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    batches(tmp_path / "c.tar.gz", change={b"extra": Malicious()})
    with pytest.raises(ValueError, match="which is no array"):
        read_cifar_batches(tmp_path / "c.tar.gz")
    assert not (tmp_path / "harm.txt").exists()


def test_incomplete_and_damaged_archives_are_named(tmp_path, own_store, monkeypatch):
    archive = tmp_path / "cifar-10-python.tar.gz"
    batches(archive, leave_out="data_batch_4")
    with pytest.raises(ValueError, match=r"cifar-10-python\.tar\.gz lacks data_batch_4"):
        read_cifar_batches(archive)
    monkeypatch.setenv("NBUTILS_DATA", str(tmp_path))
    with pytest.raises(ValueError, match="is damaged: its MD5 is"):
        keep_images("cifar10")
    archive.write_bytes(archive.read_bytes()[:300])
    with pytest.raises(ValueError, match="cannot be read as CIFAR-10"):
        read_cifar_batches(archive)


def test_writing_to_a_mapped_array_changes_nothing_on_disk(pictures, own_store):
    images = keep_images(f"folder:{pictures}").images
    before = images.train.copy()
    images.train[:] = 0
    assert (keep_images(f"folder:{pictures}").images.train == before).all()
    assert len(Store("data").addresses()) == 1


@pytest.mark.skipif("mnist" not in THERE, reason="MNIST is not here")
def test_a_smaller_version_is_balanced_and_has_a_version_of_its_own():
    whole, few = load_dataset("mnist"), load_dataset("mnist-2k")
    assert few.train_pixels.shape == (2000, 784)
    assert np.bincount(few.train_true).tolist() == [200] * 10
    assert (few.test_pixels == whole.test_pixels).all()
    assert few.version != whole.version
    assert all("2,000" in text for text in (few.title, few.origin))
    rows = {row.tobytes() for row in whole.train_pixels}
    assert all(row.tobytes() in rows for row in few.train_pixels[:50])
    with pytest.raises(ValueError, match="number of examples in 'mnist-61k' must be from 1 to 60000"):
        load_dataset("mnist-61k")


def command(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "nbutils", "data", *arguments], capture_output=True, text=True)


def test_the_command_lists_and_verifies(pictures, own_store, monkeypatch, tmp_path):
    monkeypatch.setenv("NBUTILS_DATA", str(tmp_path / "empty"))
    listing = command()
    assert listing.returncode == 0
    for words in ("digits", "ready", "missing", "NBUTILS_DATA", "cifar-10-python.tar.gz", "folder:PATH"):
        assert words in listing.stdout
    good = command("verify", f"folder:{pictures}", "digits")
    assert good.returncode == 0, good.stderr
    assert "8 (4 to 4 a class) + 4 (2 to 2 a class) images of 8x8x3" in good.stdout
    (pictures / "train/dogs/3.png").write_bytes(b"broken")
    bad = command("verify", f"folder:{pictures}", "plantvillage")
    assert bad.returncode == 1
    assert "train/dogs/3.png cannot be read as a picture" in bad.stderr
    assert "'plantvillage' is not in" in bad.stderr
    assert "Traceback" not in bad.stderr


def test_the_data_folder(monkeypatch):
    monkeypatch.delenv("NBUTILS_DATA", raising=False)
    assert sources.data_folder().name == "data"
    monkeypatch.setenv("NBUTILS_DATA", "~/x")
    assert sources.data_folder() == Path.home() / "x"


@pytest.mark.skipif("mnist" not in THERE, reason="MNIST is not here")
def test_a_range_takes_the_images_that_follow():
    """Disjoint from those before, together the larger part, and equally many of each class."""
    few, more, others = (load_dataset(f"mnist-{name}") for name in ("2k", "4k", "2k-4k"))

    def seen(data) -> set[bytes]:
        return {image.tobytes() for image in data.train_pixels}

    assert not seen(few) & seen(others)
    assert seen(few) | seen(others) == seen(more)
    assert np.bincount(others.train_true).tolist() == [200] * 10
    assert "from 2,001 to 4,000" in others.origin
    assert len({data.version for data in (few, more, others)}) == 3
    for name in ("mnist-5k-2k", "mnist-2k-2k"):
        with pytest.raises(ValueError, match="a range of images from fewer to more"):
            parse_name(name)
    with pytest.raises(ValueError, match="number of examples in 'mnist-2k-70k' must be from 1 to 60000"):
        load_dataset("mnist-2k-70k")


def written_idx(path: Path, array: np.ndarray) -> Path:
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(header + array.tobytes()) if path.suffix == ".gz" else header + array.tobytes())
    return path


@pytest.mark.parametrize("name", ["images.gz", "images"])
def test_idx_files_are_read_and_damaged_ones_named(tmp_path, rng, name):
    array = rng.integers(256, size=(5, 4, 3), dtype=np.uint8)
    path = written_idx(tmp_path / name, array)
    assert (read_idx(path) == array).all()
    whole = gzip.decompress(path.read_bytes()) if path.suffix else path.read_bytes()
    for content, words in (
        (whole[:-1], "it holds 59 bytes or more, not 60"),
        (whole + b"x", "it holds 61 bytes or more, not 60"),
        (b"\0\0\x0d\x03" + whole[4:], "it does not begin as an idx file of bytes does"),
        (whole[:4] + b"\xff" * 12, "its header promises"),
        (whole[:7], "its header promises"),
        (b"", "it does not begin"),
    ):
        path.write_bytes(gzip.compress(content) if path.suffix else content)
        with pytest.raises(ValueError, match=f"{re.escape(str(path))} cannot be read as idx: {words}"):
            read_idx(path)
    if path.suffix:
        for damaged in (gzip.compress(whole)[:-9], b"no archive", gzip.compress(whole)[:20] + b"\xff" * 30):
            path.write_bytes(damaged)
            with pytest.raises(ValueError, match="cannot be read as idx"):
                read_idx(path)


def test_where_only_the_test_images_of_kmnist_are_there_they_are_divided(
    tmp_path, monkeypatch, fresh_data, own_store, rng
):
    monkeypatch.setenv("NBUTILS_DATA", str(tmp_path))
    monkeypatch.setattr(torchvision_datasets().KMNIST, "resources", [])
    labels = np.repeat(np.arange(10, dtype=np.uint8), 1000)[rng.permutation(10_000)]
    pixels = rng.integers(256, size=(10_000, 28, 28), dtype=np.uint8)
    raw = tmp_path / "KMNIST/raw"
    for what, array in (("images-idx3", pixels), ("labels-idx1", labels)):
        written_idx(raw / f"t10k-{what}-ubyte.gz", array)
    data = load_dataset("kmnist")
    assert (len(data.train_true), len(data.test_labels)) == (6000, 4000)
    assert np.bincount(data.train_true).tolist() == [600] * 10
    assert "divided by seed into 6,000 training and 4,000 test images" in data.origin
    both = np.vstack([data.train_pixels, data.test_pixels])
    assert len({image.tobytes() for image in both}) == 10_000
    own = {image.tobytes(): label for image, label in zip(pixels.reshape(10_000, -1), labels, strict=True)}
    assert all(own[image.tobytes()] == label for image, label in zip(data.train_pixels, data.train_true, strict=True))


def test_damaged_files_of_kmnist_are_named(tmp_path, monkeypatch, fresh_data, own_store):
    monkeypatch.setenv("NBUTILS_DATA", str(tmp_path))
    raw = tmp_path / "KMNIST/raw"
    for what, array in (("images-idx3", np.zeros((3, 28, 28), np.uint8)), ("labels-idx1", np.zeros(3, np.uint8))):
        written_idx(raw / f"t10k-{what}-ubyte.gz", array)
    with pytest.raises(ValueError, match=r"t10k-images-idx3-ubyte.gz is damaged: its MD5 is \w+, not 5c965bf0"):
        load_dataset("kmnist")
    for file in raw.iterdir():
        (raw / file.stem).write_bytes(gzip.decompress(file.read_bytes()))
        file.unlink()
    with pytest.raises(ValueError, match="must hold the 10,000 test images of KMNIST, 1,000 of each class, received"):
        load_dataset("kmnist")
