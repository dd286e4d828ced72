from __future__ import annotations

import io
import tarfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from nbutils.data.pictures import decode, decode_folder, list_pictures, pictures_in_archive, resized


def png(seed: int, shape: tuple[int, ...] = (6, 6)) -> tuple[bytes, np.ndarray]:
    pixels = np.random.default_rng(seed).integers(256, size=shape, dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue(), pixels


def fill(folder: Path, names: list[str], shape: tuple[int, ...] = (6, 6)) -> dict[str, np.ndarray]:
    pixels = {}
    for seed, name in enumerate(names):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        content, pixels[name] = png(seed, shape)
        file.write_bytes(content)
    return pixels


SPLIT = ["train/b c/2.png", "train/b c/10.png", "train/a,x/1.png", "test/a,x/9.png", "test/b c/3.png"]


def test_folders_with_a_split(tmp_path):
    pixels = fill(tmp_path, SPLIT)
    (tmp_path / "train/a,x/notes.txt").write_text("no picture")
    (tmp_path / "readme.md").write_text("no picture")
    with pytest.warns(UserWarning, match="is read without 1 entry"):
        found = decode_folder(tmp_path, "mine")
    assert found.classes == ("a,x", "b c")
    order = ["train/a,x/1.png", "train/b c/10.png", "train/b c/2.png"]
    assert (found.train == np.stack([pixels[name] for name in order])).all()
    assert found.train_labels.tolist() == [0, 1, 1]
    assert (found.test == np.stack([pixels["test/b c/3.png"], pixels["test/a,x/9.png"]])).all()
    assert found.test_labels.tolist() == [1, 0]
    assert found.origin == "mine, without 1 entry that is no picture of a class, train/a,x/notes.txt"


def test_folders_without_a_split_give_a_fifth_of_each_class(tmp_path):
    fill(
        tmp_path,
        [f"{group}/{number}.png" for group, count in (("a", 10), ("b", 2), ("c", 1)) for number in range(count)],
    )
    found = decode_folder(tmp_path, "")
    assert np.bincount(found.test_labels, minlength=3).tolist() == [2, 1, 0]
    assert np.bincount(found.train_labels).tolist() == [8, 1, 1]
    again = decode_folder(tmp_path, "")
    assert (again.test == found.test).all()
    assert not {image.tobytes() for image in found.train} & {image.tobytes() for image in found.test}


def test_archives_are_read_without_being_unpacked(tmp_path):
    fill(tmp_path / "x", SPLIT)
    archive = tmp_path / "pictures.tar.xz"
    with tarfile.open(archive, "w:xz") as content:
        content.add(tmp_path / "x", arcname="../../escape/set")
    found, expected = decode(pictures_in_archive(archive), ""), decode_folder(tmp_path / "x", "")
    assert (found.train == expected.train).all()
    assert found.classes == expected.classes
    assert not (tmp_path.parent.parent / "escape").exists()
    archive.write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    with pytest.raises(ValueError, match=r"pictures\.tar\.xz is damaged"):
        list(pictures_in_archive(archive))


def test_sizes_and_colours(tmp_path):
    fill(tmp_path, ["a/1.png", "b/1.png"], (8, 8))
    fill(tmp_path, ["a/2.png"], (4, 6, 3))
    for options in ({}, {"size": 4}, {"colour": True}):
        with pytest.raises(ValueError, match=r"a/2\.png has shape .*, a/1\.png has .*ask for one size"):
            decode_folder(tmp_path, "", **options)
    grey = decode_folder(tmp_path, "", size=4, colour=False)
    assert grey.train.shape[1:] == (4, 4)
    assert decode_folder(tmp_path, "", size=5, colour=True).train.shape[1:] == (5, 5, 3)


def test_what_is_no_picture_is_named(tmp_path):
    fill(tmp_path, ["a/1.png", "b/1.png", "b/2.png"])
    whole = (tmp_path / "b/2.png").read_bytes()
    for content in (b"", b"hello", whole[: len(whole) // 2]):
        (tmp_path / "b/2.png").write_bytes(content)
        with pytest.raises(ValueError, match=r"b/2\.png cannot be read as a picture"):
            decode_folder(tmp_path, "")
    header = b"IHDR" + (60_000).to_bytes(4, "big") * 2 + b"\x08\x00\x00\x00\x00"
    bomb = b"\x89PNG\r\n\x1a\n" + (13).to_bytes(4, "big") + header + zlib.crc32(header).to_bytes(4, "big")
    (tmp_path / "b/2.png").write_bytes(bomb)
    with pytest.raises(ValueError, match=r"b/2\.png cannot be read as a picture"):
        decode_folder(tmp_path, "")


def test_what_is_no_data_set_is_refused(tmp_path):
    with pytest.raises(ValueError, match="holds no pictures"):
        list_pictures(tmp_path)
    fill(tmp_path, ["train/a/1.png", "train/b/1.png"])
    with pytest.raises(ValueError, match="has a folder 'train' but not the other"):
        list_pictures(tmp_path)
    fill(tmp_path, ["test/a/1.png", "test/c/1.png"])
    with pytest.raises(ValueError, match="class 'c' has no training picture"):
        decode_folder(tmp_path, "")
    fill(tmp_path / "one", ["only/1.png", "only/2.png"])
    with pytest.raises(ValueError, match="at least two classes, found only"):
        decode_folder(tmp_path / "one", "")
    archive = tmp_path / "empty.tar.xz"
    tarfile.open(archive, "w:xz").close()
    with pytest.raises(ValueError, match="holds no pictures under train"):
        list(pictures_in_archive(archive))


def test_resizing_is_by_area():
    image = np.kron(np.array([[10, 20], [30, 40]], np.uint8), np.ones((2, 2), np.uint8))
    assert resized(image[None], 2).tolist() == [[[10, 20], [30, 40]]]
    assert resized(np.stack([image] * 3, axis=-1)[None], 2).shape == (1, 2, 2, 3)
