"""Folders as people have them: odd pictures, odd files beside them, odd names."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import struct
import subprocess
import sys
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from nbutils.data import pictures
from nbutils.data.catalogue import full_name, join_names, keep_images, parse_name, split_names
from nbutils.data.datasets import load_dataset
from nbutils.data.pictures import Images, decode, decode_folder, list_pictures, pictures_in_archive
from nbutils.runs.spec import RunSpec
from nbutils.study.study import Study
from nbutils.sweeps.parameters import check_parameters

RAMP = np.arange(64, dtype=np.uint8).reshape(8, 8) * 4
DEEP = (np.arange(64, dtype=np.uint16) * 1040).reshape(8, 8)


def save(file: Path, picture: Image.Image | np.ndarray = RAMP, **options: object) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    (picture if isinstance(picture, Image.Image) else Image.fromarray(picture)).save(file, **options)
    return file


def read(folder: Path, **options: object) -> Images:
    return decode_folder(folder, "mine", **options)


@pytest.fixture
def letters(tmp_path) -> Path:
    """Two classes of three pictures each."""
    for label in ("a", "b"):
        for number in range(3):
            save(tmp_path / "letters" / label / f"{number}.png", RAMP // (number + 1))
    return tmp_path / "letters"


@pytest.fixture
def read_one(tmp_path) -> Callable[..., np.ndarray]:
    """The pixels of one picture as a data set holds them; the others of that data set are black, of a given shape."""

    def look(name: str, picture: Image.Image | np.ndarray, shape: tuple = (8, 8), **options: object) -> np.ndarray:
        save(tmp_path / "one/train/a" / name, picture, **options)
        for other in ("train/b/z.png", "test/a/z.png"):
            save(tmp_path / "one" / other, np.zeros(shape, np.uint8))
        return read(tmp_path / "one").train[0]

    return look


@pytest.mark.parametrize("name", ["1.png", "1.tif"])
def test_sixteen_bits_keep_their_range(read_one, name):
    found = read_one(name, DEEP)
    assert found.tolist() == np.rint(DEEP / 257).astype(int).tolist()
    assert found.max() == 255
    assert len(np.unique(found)) == 64  # saturated, all but one of them would be 255


def test_sixteen_bits_in_other_byte_orders_and_formats(read_one, tmp_path):
    expected = np.rint(DEEP / 257).astype(np.uint8)
    big = Image.frombytes("I;16B", (8, 8), DEEP.astype(">u2").tobytes())
    assert (read_one("1.tif", big) == expected).all()
    (tmp_path / "one/train/a/1.tif").unlink()
    (tmp_path / "one/train/a/1.pgm").write_bytes(b"P5 8 8 65535\n" + DEEP.astype(">u2").tobytes())
    assert (read(tmp_path / "one").train[0] == expected).all()


@pytest.mark.parametrize("values", [np.arange(64, dtype=np.int32), np.linspace(0, 1, 64, dtype=np.float32)])
def test_depths_without_a_brightest_value_are_refused(letters, values):
    save(letters / "a/9.tif", values.reshape(8, 8))
    with pytest.raises(ValueError, match=r"^a/9\.tif cannot be read as a picture: mode [IF] does not say which value"):
        read(letters)


def test_twelve_bits_are_refused(letters):
    """Written by hand, for Pillow writes none: one strip of 8 x 8 values of 12 bits."""
    tags = {256: 8, 257: 8, 258: 12, 259: 1, 262: 1, 273: 8, 277: 1, 278: 8, 279: 96}
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    strip = bytes(96)
    content = b"II*\x00" + struct.pack("<I", 8 + 96) + strip + struct.pack("<H", len(tags)) + entries + bytes(4)
    (letters / "a/9.tif").write_bytes(content)
    with pytest.raises(ValueError, match=r"^a/9\.tif cannot be read as a picture: mode I;16 does not say which value"):
        read(letters)


def test_one_bit_palettes_and_inks(read_one):
    flags = Image.fromarray(RAMP > 100)
    assert flags.mode == "1"
    assert read_one("1.png", flags).tolist() == np.where(RAMP > 100, 255, 0).tolist()


@pytest.mark.parametrize("name", ["1.png", "1.gif"])
def test_palettes_show_their_colours(read_one, name):
    colours = np.zeros((8, 8, 3), np.uint8)
    colours[:4, :, 0], colours[4:, :, 2] = 200, 90
    palette = Image.fromarray(colours).convert("P", palette=Image.Palette.ADAPTIVE, colors=2)
    assert (read_one(name, palette, (8, 8, 3)) == colours).all()


def test_inks_become_light(read_one):
    ink = Image.new("CMYK", (8, 8), (255, 0, 0, 0))
    assert (read_one("1.tif", ink, (8, 8, 3)) == (0, 255, 255)).all()


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_what_is_transparent_lies_on_white(read_one, mode):
    """Black letters on nothing, whose hidden colour is black as well: without a background the letter is lost."""
    alpha = np.zeros((8, 8), np.uint8)
    alpha[2:5, 2:5] = 255
    if mode != "P":
        alpha[6, 6] = 51
    picture = Image.fromarray(np.dstack([*[np.zeros_like(alpha)] * (1 if mode == "LA" else 3), alpha]))
    options = {}
    if mode == "P":
        picture = Image.fromarray((alpha == 0).astype(np.uint8)).convert("P")
        picture.putpalette([0, 0, 0, 0, 0, 0])
        options = {"transparency": 1}
    found = read_one("1.png", picture, (8, 8) if mode == "LA" else (8, 8, 3), **options)
    assert (found.reshape(8, 8, -1) == (255 - alpha.astype(int))[..., None]).all()


def test_opaque_alpha_changes_nothing(read_one, rng):
    colours = rng.integers(256, size=(8, 8, 4), dtype=np.uint8)
    colours[..., 3] = 255
    assert (read_one("1.png", colours, (8, 8, 3)) == colours[..., :3]).all()


@pytest.mark.parametrize("name", ["1.gif", "1.png", "1.webp", "1.tif"])
def test_several_frames_are_refused(letters, name):
    frames = [Image.fromarray(np.full((8, 8), shade, np.uint8)) for shade in (10, 200)]
    save(letters / "b" / name, frames[0], save_all=True, append_images=frames[1:])
    with pytest.raises(ValueError, match=rf"^b/{name} cannot be read as a picture: it holds 2 frames; save each"):
        read(letters)


@pytest.mark.parametrize("name", ["7.gif", "7.tif", "7.tiff", "7.webp", "7.bmp", "7.PNG", "7.pgm"])
def test_every_known_ending_is_read(letters, name):
    save(letters / "b" / name)
    found = read(letters, colour=False)
    assert len(found.train) + len(found.test) == 7


@pytest.mark.parametrize(("orientation", "quarters"), [(1, 0), (3, 2), (6, 3), (8, 1)])
@pytest.mark.parametrize("name", ["1.png", "1.jpg", "1.tif"])
def test_photographs_stand_upright(read_one, name, orientation, quarters):
    stored = np.zeros((8, 16), np.uint8)
    stored[:, :8] = 240
    upright = np.rot90(stored, quarters)
    exif = Image.Exif()
    exif[0x0112] = orientation
    found = read_one(name, stored, upright.shape, exif=exif)
    assert found.shape == upright.shape
    assert np.abs(found.astype(int) - upright).max() <= 12  # JPEG rounds


def test_hidden_folders_and_rubbish_are_neither_classes_nor_pictures(letters, recwarn):
    expected = decode_folder(letters, "mine")
    for folder in (".ipynb_checkpoints", "__MACOSX", ".git", "@eaDir", "$RECYCLE.BIN"):
        save(letters / folder / "0.png")
    for name in ("._0.png", ".DS_Store", "Thumbs.db", "desktop.ini"):
        (letters / "a" / name).write_bytes(b"no picture")
    (letters / "a/.ipynb_checkpoints").mkdir()
    found = decode_folder(letters, "mine")
    assert found.classes == ("a", "b")
    assert (found.train == expected.train).all()
    assert found.origin == "mine"
    assert not recwarn.list


def test_what_is_left_out_is_counted_and_stays_in_the_origin(letters, own_store):
    (letters / "a/notes.txt").write_text("no picture")
    (letters / "a/7.heic").write_bytes(b"a telephone's picture")
    save(letters / "b/older/0.png")
    save(letters / "cover.png")
    (letters / "README.md").write_text("is welcome")
    words = r"without 4 entries that are no pictures of a class, such as a/7\.heic"
    with pytest.warns(UserWarning, match=words):
        assert keep_images(f"folder:{letters}").images.origin.endswith("such as a/7.heic")
    assert set(list_pictures(letters).left_out) == {"a/7.heic", "a/notes.txt", "b/older", "cover.png"}


def test_a_folder_beside_train_and_test_is_left_out_with_a_word(tmp_path):
    for name in ("train/a/1.png", "train/b/1.png", "test/a/1.png", "val/a/1.png"):
        save(tmp_path / name)
    with pytest.warns(UserWarning, match="without 1 entry that is no picture of a class, val"):
        decode_folder(tmp_path, "mine")


def test_a_class_without_pictures_is_refused(letters):
    (letters / "c").mkdir()
    with pytest.raises(ValueError, match=r"^class folder c holds no pictures; fill it or remove it"):
        read(letters)
    (letters / "c/1.heic").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"c holds no pictures but 1 entry that is no picture of a class, c/1\.heic"):
        read(letters)


def test_a_data_set_without_test_is_refused(tmp_path):
    for name in ("a/1.png", "b/1.png"):
        save(tmp_path / name)
    with pytest.raises(ValueError, match="no picture is left for the test"):
        read(tmp_path)


def test_only_regular_files_are_opened(letters):
    os.mkfifo(letters / "a/x.png")
    with pytest.raises(ValueError, match=r"^a/x\.png is no regular file but a pipe, a socket or a device; remove it"):
        read(letters)
    (letters / "a/x.png").unlink()
    with socket.socket(socket.AF_UNIX) as end:
        here = Path.cwd()
        os.chdir(letters / "a")  # names of sockets must be short
        try:
            end.bind("y.png")
        finally:
            os.chdir(here)
        with pytest.raises(ValueError, match=r"^a/y\.png is no regular file"):
            read(letters)
    (letters / "a/y.png").unlink()
    (letters / "a/z.png").symlink_to("/dev/zero")
    with pytest.raises(ValueError, match=r"^a/z\.png is no regular file"):
        read(letters)


@pytest.mark.parametrize("name", ["c", "a/9.png"])
@pytest.mark.parametrize("target", ["nowhere", "itself"])
def test_broken_links_and_loops_are_refused(letters, name, target):
    link = letters / name
    link.symlink_to(link if target == "itself" else letters / "nowhere")
    with pytest.raises(ValueError, match=rf"^{name} is .*a broken link; remove it"):
        read(letters)


def test_a_loop_of_folders_ends(letters):
    (letters / "a/loop").symlink_to(letters)
    assert list_pictures(letters).left_out == ("a/loop",)


def test_links_to_classes_are_followed_and_watched(letters, tmp_path, own_store):
    (tmp_path / "views").mkdir()
    for label in ("a", "b"):
        (tmp_path / "views" / label).symlink_to(letters / label)
    name = f"folder:{tmp_path / 'views'}"
    first = keep_images(name)
    assert first.images.classes == ("a", "b")
    before = (letters / "a/0.png").stat()
    content = (letters / "a/0.png").read_bytes()
    other = save(tmp_path / "other.png", 255 - RAMP).read_bytes()
    (letters / "a/0.png").write_bytes(other)
    assert keep_images(name).version != first.version
    (letters / "a/0.png").write_bytes(content)
    assert keep_images(name).version == first.version
    os.utime(letters / "a/0.png", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert keep_images(name).version == first.version


def test_a_change_that_keeps_size_and_time_is_seen(letters, own_store):
    file = save(letters / "a/0.bmp")
    first, facts = keep_images(f"folder:{letters}@8@grey"), file.stat()
    save(file, 255 - RAMP)
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (facts.st_size, facts.st_mtime_ns)
    assert keep_images(f"folder:{letters}@8@grey").version != first.version


def bomb(width: int) -> bytes:
    header = b"IHDR" + width.to_bytes(4, "big") * 2 + b"\x08\x00\x00\x00\x00"
    return b"\x89PNG\r\n\x1a\n" + (13).to_bytes(4, "big") + header + zlib.crc32(header).to_bytes(4, "big")


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("content", [b"", b"hello", b"%!PS-Adobe-3.0 EPSF-3.0\n", bomb(11_000), bomb(60_000)])
def test_damaged_pictures_and_bombs_are_named(letters, content):
    (letters / "b/ü 2.png").write_bytes(content)
    with pytest.raises(ValueError, match=r"^b/ü 2\.png cannot be read as a picture: [^<]+$"):
        read(letters)


def pixels_or_complaint(folder: Path) -> bytes | str:
    """All pixels of a folder of pictures of 8 x 8 grey values, or what is wrong with it."""
    try:
        found = read(folder, size=8, colour=False)
    except ValueError as error:
        return str(error)
    return found.train.tobytes() + found.test.tobytes()


@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
@pytest.mark.parametrize("ending", ["png", "jpg", "gif", "tif", "webp", "bmp"])
def test_truncated_and_garbled_pictures_are_named(letters, ending, rng):
    """A cut anywhere ends in a sentence or, past the last pixel, in the whole picture."""
    file = save(letters / "b" / f"2.{ending}", rng.integers(256, size=(8, 8), dtype=np.uint8))
    expected, whole = pixels_or_complaint(letters), file.read_bytes()
    cuts, garbled = [], []
    for place in range(1, len(whole), max(len(whole) // 25, 1)):
        file.write_bytes(whole[:place])
        cuts.append(pixels_or_complaint(letters))
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        garbled.append(pixels_or_complaint(letters))
    refused = [found for found in cuts + garbled if isinstance(found, str)]
    assert len(refused) > 15
    assert all(words.startswith(f"b/2.{ending} cannot be read as a picture: ") for words in refused)
    assert {found for found in cuts if isinstance(found, bytes)} <= {expected}


def test_what_cannot_be_read_is_named(letters):
    (letters / "a/9.png").symlink_to("/proc/self/mem")  # a regular file whose first byte nobody may read
    with pytest.raises(ValueError, match=r"^a/9\.png cannot be read: Input/output error"):
        read(letters)


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can become nobody")
def test_forbidden_folders_and_files_are_named(tmp_path):
    """As a user who may not read them: a class folder, then a file."""
    for name in ("a/1.png", "a/2.png", "b/1.png", "b/2.png"):
        save(tmp_path / "set" / name)
    code = (
        "import os, sys; from pathlib import Path; from nbutils.data.pictures import *; import PIL.Image\n"
        "os.chdir(sys.argv[1]); decode_folder(Path('.'), ''); os.setuid(65534)\n"
        "try: decode_folder(Path('.'), '')\n"
        "except ValueError as error: print(error)"
    )
    os.chmod(tmp_path / "set", 0o755)
    for name, words in (("b", "b cannot be read: Permission denied"), ("b/1.png", "b/1.png cannot be read: Perm")):
        mode = (tmp_path / "set" / name).stat().st_mode
        os.chmod(tmp_path / "set" / name, 0o000)
        done = subprocess.run([sys.executable, "-c", code, tmp_path / "set"], capture_output=True, text=True)
        os.chmod(tmp_path / "set" / name, mode)
        assert words in done.stdout, done.stderr


def test_limits_are_sentences(letters, monkeypatch):
    with (letters / "b/9.png").open("wb") as file:
        file.truncate(pictures.MOST_BYTES + 1)
    with pytest.raises(ValueError, match=r"^b/9\.png is larger than a picture may be: 1,073,741,825 bytes, at most"):
        read(letters)
    (letters / "b/9.png").unlink()
    monkeypatch.setattr(pictures, "MOST_MEMORY", 4 * RAMP.nbytes)
    with pytest.raises(ValueError, match=r"^5 pictures, up to b/1\.png, take more than .*; ask for a smaller size"):
        read(letters)
    assert len(read(letters, size=4).train) == 4


def test_class_names_in_any_script_but_no_odd_bytes(letters, own_store):
    for name in ("日本", "Ça va?", "a\nb", "$5 and $10"):
        for number in range(2):
            save(letters / name / f"{number}.png")
    assert set(load_dataset(f"folder:{letters}").classes) == {"a", "b", "日本", "Ça va?", "a\nb", "$5 and $10"}
    os.mkdir(os.fsencode(letters) + b"/\xff")
    with pytest.raises(ValueError, match=r"the name of class folder '\?' is no valid Unicode; rename it"):
        read(letters)


# Names of folders: what they mean, wherever they are read.


def test_names_of_folders_travel_with_their_whole_path(letters, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    whole = f"folder:{letters}"
    for written in ("folder:letters", "folder:./letters/", "folder:letters/../letters", whole):
        assert full_name(written) == whole
        assert RunSpec(dataset=written).dataset == whole
        assert Study(dataset=written).dataset == whole
    monkeypatch.setenv("HOME", str(tmp_path))
    assert full_name("folder:~/letters") == whole
    assert full_name("folder:letters@4@grey") == f"{whole}/@4@grey"
    assert full_name(f"{whole}/@4@grey") == f"{whole}/@4@grey"
    page = check_parameters("h1_communities", {"dataset": "folder:letters", "study": "digits folder:letters"})
    assert list(page.studies()) == [whole, "digits"]


def test_the_working_folder_decides_also_in_one_process(tmp_path, own_store, monkeypatch):
    for place, shade in (("one", 10), ("two", 20)):
        for label in "ab":
            for number in range(2):
                file = save(tmp_path / place / "set" / label / f"{number}.png", np.full((4, 4), shade, np.uint8))
                os.utime(file, ns=(1, 1))
        monkeypatch.chdir(tmp_path / place)
        assert (load_dataset("folder:set").train_pixels == shade).all()


def test_an_existing_folder_wins_over_a_size(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    here = tmp_path.resolve()

    def meant(name: str) -> tuple:
        asked = parse_name(name)
        assert parse_name(asked.whole) == asked, "must mean the same again"
        return str(asked.path.relative_to(here)), asked.size, asked.colour

    (tmp_path / "at").mkdir()
    assert meant("folder:at@32") == ("at", 32, None)
    assert meant("folder:at@32@grey") == ("at", 32, False)
    (tmp_path / "at@32").mkdir()
    travelling = f"folder:{here}/at/@32"
    assert meant("folder:at@32") == ("at@32", None, None)
    assert meant("folder:at@32@grey") == ("at@32", None, False)
    assert meant("folder:at@32@16") == ("at@32", 16, None)
    assert meant("folder:at/@32") == ("at", 32, None)
    assert meant(travelling) == ("at", 32, None)
    (tmp_path / "at@32@grey").mkdir()
    assert meant("folder:at@32@grey") == ("at@32@grey", None, None)
    assert meant("folder:at@32/@grey") == ("at@32", None, False)
    (tmp_path / "at/@32").mkdir()
    assert meant("folder:at/@32") == ("at", 32, None)
    assert meant("folder:at/@32/") == ("at/@32", None, None)
    assert meant("folder:nowhere@32") == ("nowhere", 32, None)


@settings(max_examples=300, deadline=None)
@given(
    st.text(st.sampled_from("a@/32~. ") | st.characters(), max_size=12),
    st.sampled_from(["", "@8", "@grey", "@8@colour"]),
)
def test_any_name_travels_or_is_refused(text, options):
    """What is made absolute means the same when it is read again, and no name ends in a library's error."""
    try:
        asked = parse_name(f"folder:{text}{options}")
    except ValueError as error:
        if str(error).startswith("dataset must be "):
            return
        raise
    assert asked.path.is_absolute()
    assert parse_name(asked.whole) == asked
    assert full_name(asked.whole) == asked.whole


def test_pictures_in_archives_have_a_limit_too(letters, tmp_path, monkeypatch):
    for side in ("train", "test"):
        (letters / side).mkdir()
        for label in ("a", "b"):
            shutil.copytree(letters / label, letters / side / label)
            save(letters / side / label / "._0.png")
            save(letters / side / "__MACOSX" / "0.png")
    with tarfile.open(tmp_path / "x.tar.xz", "w:xz") as content:
        content.add(letters, "letters")
    found = decode(pictures_in_archive(tmp_path / "x.tar.xz"), "")
    assert (len(found.train), len(found.test), found.classes) == (6, 6, ("a", "b"))
    monkeypatch.setattr(pictures, "MOST_BYTES", 10)
    with pytest.raises(ValueError, match=r"^letters/test/a/\d\.png is larger than a picture may be"):
        list(pictures_in_archive(tmp_path / "x.tar.xz"))


@pytest.mark.parametrize(
    "name", ["folder:~nobody-of-that-name/x", "folder:a\0b", "folder:\udcff", "folder:x@0", "folder:", "mnist@٣"]
)
def test_names_that_no_folder_has_are_refused(name):
    with pytest.raises(ValueError, match=r"^dataset must be ") as caught:
        parse_name(name)
    assert "Traceback" not in str(caught.value)


def test_long_names_make_short_sentences():
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        load_dataset("folder:/" + "x" * 5000)
    with pytest.raises(ValueError, match="dataset must be one of") as caught:
        load_dataset("x" * 5000)
    assert len(str(caught.value)) < 700


ODD = ["my letters", 'it\'s "quoted"', "a,b", "100%", "two\nlines", "$HOME", "a;b|c", "é"]


@pytest.mark.parametrize("name", ODD)
def test_odd_names_of_folders_work(tmp_path, own_store, name):
    for label in "ab":
        for number in range(2):
            save(tmp_path / name / label / f"{number}.png")
    whole = f"folder:{tmp_path / name}"
    assert split_names(join_names(["digits", whole])) == ["digits", whole]
    assert list(check_parameters("synthesis", {"study": join_names([whole, "digits"])}).studies()) == [whole, "digits"]
    assert load_dataset(whole).train_pixels.shape == (2, 64)


def test_make_passes_names_with_spaces_on_whole(root):
    names = ["digits", "folder:/my letters", "folder:/$5 & 'more'"]
    given = f"DATASETS={join_names(names).replace('$', '$$')}"
    done = subprocess.run(["make", "-n", "-o", ".venv/ready", "book", given], cwd=root, capture_output=True, text=True)
    line = next(line for line in done.stdout.splitlines() if "nbutils run" in line)
    words = shlex.split(line)
    assert words[words.index("--datasets") + 1 : words.index("--seeds")] == names


def test_names_in_one_text():
    assert join_names(["digits", "mnist-5k", "plantvillage@32"]) == "digits mnist-5k plantvillage@32"
    with pytest.raises(ValueError, match="must close their quotes"):
        check_parameters("synthesis", {"study": "'folder:/my letters"})


def test_the_command_runs_on_a_folder_with_a_space(tmp_path, own_store, command):
    """Asked for by a relative path, from a folder of its own."""
    rng = np.random.default_rng(0)
    for label in ("a $5 b", "c"):
        for number in range(10):
            save(
                tmp_path / "my 'new' letters" / label / f"{number}.png", rng.integers(256, size=(6, 6), dtype=np.uint8)
            )
    options = ["--seeds", "1", "--epochs", "1", "--jobs", "2"]
    done = command("run", "--datasets", "folder:my 'new' letters", *options)
    assert done.returncode == 0, done.stderr
    assert f"on folder:{tmp_path}/my 'new' letters;" in done.stdout
    assert "0 failed" in done.stdout
    again = command("run", "--datasets", f"folder:{tmp_path}/my 'new' letters", *options, folder=Path.cwd())
    assert " 0 computed" in again.stdout, again.stdout + again.stderr
    there = command("runs", "--dataset", "folder:my 'new' letters")
    assert there.returncode == 0, there.stderr
    assert there.stdout.count(f"folder:{tmp_path}/my 'new' letters") > 5


def test_a_class_that_comes_in_two_unicode_forms_is_refused(letters):
    """As after a copy between systems: both read é, and a computer takes them for two classes."""
    for name in (b"\xc3\xa9", b"e\xcc\x81"):
        save(letters / os.fsdecode(name) / "1.png")
    with pytest.raises(ValueError, match="class 'é' comes twice, written with other Unicode characters; merge"):
        read(letters)
