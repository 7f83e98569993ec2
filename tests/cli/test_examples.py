"""Every example that documents show is run: the EXAMPLES of all commands, and the blocks of shell. RUN_BY names the tests of the other blocks.

An example runs in a new folder with the files that the examples name. A test fails if the command fails, or if a
document names a command or an option that the program does not have. examples/ has the programs in C."""
import base64
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys

import numpy as np
import pytest
import zarr
from conftest import PROGRAM, run
from documents import DOCUMENTS, ROOT, read_blocks
from s3_server import find_versitygw

PAGES = [str(document.relative_to(ROOT)) for document in DOCUMENTS]
BLOCKS = [block for page in PAGES for block in read_blocks(page)]


# ---- the files that examples name ----

def save_struct(folder):
    kind = np.dtype([("id", "<i4"), ("pos", [("x", "<f4"), ("y", "<f4")])])
    particles = np.zeros(4, kind)
    particles["pos"]["x"] = np.arange(4)
    np.save(folder / "particles.npy", particles)
    np.save(folder / "x.npy", np.arange(4, dtype="f4") / 2)
    return folder / "particles.npy"


def make_array(group, name, shape, dtype="i2", **more):
    array = group.create_array(name, shape=shape, dtype=dtype, **more)
    array[...] = (np.arange(array.size) % 97).reshape(shape).astype(dtype)
    return array


def make_climate(folder):
    """Two years of monthly means in the form of CMIP6, as xarray writes it."""
    group = zarr.create_group(folder / "climate.zarr", attributes={
        "Conventions": "CF-1.7 CMIP-6.2", "source_id": "example", "experiment_id": "historical", "frequency": "mon"})
    ends = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] * 2).cumsum() + 153 * 365.0
    time = np.stack([np.append(153 * 365.0, ends[:-1]), ends], 1)
    lat, lon = np.arange(-87.5, 90, 5), np.arange(0, 360, 5.0)
    t, y, x = np.meshgrid(np.arange(24), np.radians(lat), np.radians(lon), indexing="ij")
    tas = (300 - 50 * np.sin(y)**2 - 15 * np.sin(y) * np.cos(t * np.pi / 6) + 3 * np.sin(2 * x)).round(2).astype("f4")
    tas[:, 0] = 1e20
    missing = float(np.float32(1e20))
    for name, data, dims, attributes in (
            ("time", time.mean(1), ["time"], {"axis": "T", "units": "days since 1850-01-01", "calendar": "noleap", "bounds": "time_bnds"}),
            ("time_bnds", time, ["time", "bnds"], {}),
            ("lat", lat, ["lat"], {"axis": "Y", "standard_name": "latitude", "units": "degrees_north"}),
            ("lon", lon, ["lon"], {"axis": "X", "standard_name": "longitude", "units": "degrees_east"}),
            ("height", np.array(2.0), [], {"axis": "Z", "units": "m", "positive": "up"}),
            ("tas", tas, ["time", "lat", "lon"],
             {"standard_name": "air_temperature", "units": "K", "cell_methods": "area: time: mean", "coordinates": "height",
              "missing_value": missing, "_FillValue": base64.b64encode(struct.pack("<d", missing)).decode()})):
        group.create_array(name, data=data, chunks=(1, *data.shape[1:]) if name == "tas" else "auto", dimension_names=dims,
                           attributes=attributes, fill_value=missing if name == "tas" else None)
    run("consolidate", folder / "climate.zarr")


def make_hierarchies(folder):
    make_climate(folder)
    particles = save_struct(folder)
    x, a = zarr.create_group(folder / "x.zarr"), zarr.create_group(folder / "a.zarr")
    x.create_array("lat", data=np.arange(-89.5, 90), dimension_names=("lat",))
    make_array(x, "temp", (20, 180, 360), chunks=(1, 180, 360), dimension_names=("time", "lat", "lon"),
               attributes={"units": "K", "history": "made"})
    make_array(x, "a", (64, 64))
    make_array(x, "image", (40, 50), "u1")
    for name in ("old", "group", "model"):
        x.create_group(name)
    for name in ("old/b", "model/b"):
        make_array(x, name, (8,))
    make_array(x, "group/b", (8,), chunk_key_encoding={"name": "v2", "separator": "."})
    make_array(x, "anomaly", (30, 30), "f4")
    zarr.create_group(folder / "run.zarr")
    shutil.copytree(folder / "x.zarr/temp", folder / "run.zarr/temp")
    temp = make_array(a, "temp", (2, 70, 80), chunks=(1, 70, 80))
    temp[1] = temp[0]
    make_array(a, "map", (200, 300), chunks=(50, 50))
    make_array(zarr.create_group(folder / "old.zarr", zarr_format=2), "temp", (30, 40))
    for store in ("x.zarr", "a.zarr"):
        run("import", particles, folder / store / "particles")
    (folder / "names.txt").write_text("one\ntwo\nthree\nfour\nfive\n")
    run("import", "--format=lines", folder / "names.txt", folder / "x.zarr/names")
    run("consolidate", folder / "x.zarr")
    for archive in ("x.zarr.zip", "x.ozx"):
        run("import", particles, folder / archive / "particles")
        run("import", "--force", particles, folder / archive / "particles")
    for copy in ("b.zarr", "big.zarr", "download.zarr"):
        shutil.copytree(folder / "a.zarr", folder / copy)


def make_files(folder):
    np.save(folder / "temp.npy", np.ones((2, 720, 1440), "i1"))
    np.save(folder / "t7.npy", np.full((180, 360), 7, "i2"))
    np.save(folder / "day.npy", np.full((180, 360), 8, "i2"))
    (folder / "data.bin").write_bytes(np.arange(20000, dtype="<f4").tobytes())
    (folder / "counts.bin").write_bytes(np.arange(1000, dtype=">i2").tobytes())
    (folder / "new.json").write_text('["a", "b", "c"]')
    (folder / "new.txt").write_text("six\nseven\n")
    (folder / "attributes.json").write_text('{"title": "run 7"}')
    for name in ("mnt", ".config/fish/completions", "bin"):
        (folder / name).mkdir(parents=True)
    (folder / "bin/sensor").write_text("#!/bin/sh\nhead -c 259200 /dev/zero\n")  # two steps of temp
    (folder / "bin/sensor").chmod(0o755)
    for name, program in (("zarrc", PROGRAM), ("python", sys.executable)):
        (folder / "bin" / name).write_text(f'#!/bin/sh\nexec {shlex.quote(os.path.abspath(program))} "$@"\n')
        (folder / "bin" / name).chmod(0o755)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    make_hierarchies(folder)
    make_files(folder)
    return folder


def shell(command, folder):
    environment = {**{k: v for k, v in os.environ.items() if not k.startswith("ZARRC_")}, "NO_COLOR": "1",
                   "HOME": str(folder), "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    return subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)


# ---- EXAMPLES of the commands ----

COMMANDS = re.findall(r"^  ([a-z]+) ", run("--help").text.split("commands:\n")[1].split("\n\n")[0], re.M)
NEW = {"create", "import", "cp", "mv", "reencode"}  # their last node must not exist


def find_examples(command):
    text = run(command, "--help").text.partition("\nexamples:\n")[2]
    return re.findall(r"^  (\S.*)$", text, re.M)


def remove_output(command, line, folder):
    if command == "export" and "--force" not in line:
        (folder / line.split()[-1]).unlink()
    if command not in NEW:
        return
    words = shlex.split(line.partition(";")[0])
    nodes = [word for before, word in zip(words, words[1:]) if ".zarr" in word and before != "--like"]
    if nodes and "[" not in nodes[-1]:
        shutil.rmtree(folder / nodes[-1], ignore_errors=True)


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_of_command(command, model, tmp_path):
    lines = find_examples(command)
    assert lines
    for number, line in enumerate(lines):
        for tool in ("jq", "man"):
            if re.search(rf"\| {tool}\b", line) and not shutil.which(tool):
                pytest.skip(f"{tool} is not installed")
        folder = tmp_path / str(number)
        shutil.copytree(model, folder)
        remove_output(command, line, folder)
        done = shell(re.sub(r"(?<= )/mnt/", "mnt/", line), folder)
        assert done.returncode == 0, (line, done.stderr, done.stdout[-2000:])
        assert "jq" not in line or "null" not in done.stdout.split(), (line, done.stdout)


# ---- blocks of shell ----

def without_numbers(text):
    """Numbers, sizes and speeds differ: the data of `make demo` is not in the tree."""
    text = re.sub(r"-?\d[\d.]*( [KMG]i?B)?", "N", text)
    return [line.rstrip() for line in text.splitlines()]


@pytest.mark.parametrize("page", sorted({block.page for block in BLOCKS if block.language in ("console", "sh") and not block.reason}))
def test_shell(page, model, tmp_path):
    """The commands of a page run in its order. Those of a session print what it shows, less the numbers."""
    folder = tmp_path / "session"
    folder.mkdir()
    shutil.copytree(model / "bin", folder / "bin")
    rng = np.random.default_rng(7)
    np.save(folder / "brain.npy", rng.integers(0, 9, (189, 233, 197), "u1"))
    np.save(folder / "elevation.npy", rng.integers(400, 500, (344, 403), "i2"))
    make_climate(folder)
    run("import", folder / "elevation.npy", folder / "old.zarr/elevation", "--zarr-format=2", "--chunks=100,100")
    for block in read_blocks(page):
        if block.language == "sh" and not block.reason:
            done = shell("set -e\n" + block.code, folder)
            assert done.returncode == 0, (block.code, done.stderr)
        elif block.language == "console" and not block.reason:
            if "versitygw" in block.code:  # the last one of its page
                add_versitygw(folder)
            run_session(block.code, folder)
    if page == "docs/shell.md":
        check_stories(folder)
        assert (folder / "brain-side.png").read_bytes().startswith(b"\x89PNG")
        for name in ("brain", "elevation"):
            assert np.array_equal(zarr.open_array(folder / "new.zarr" / name)[...], np.load(folder / f"{name}.npy"))


def check_stories(folder):
    """What the stories of the page made, as xarray computes it."""
    xarray = pytest.importorskip("xarray")
    climate, copy = (xarray.open_zarr(folder / name) for name in ("climate.zarr", "archive.zarr"))
    xarray.testing.assert_identical(climate.load(), copy.load())
    europe = climate.tas.sel(lat=slice(35, 70), time=slice("2003-06", "2003-08")).isel(lon=[70, 71, *range(9)])
    rows = [line.split(",") for line in (folder / "europe.csv").read_text().splitlines()]
    assert [row[0] for row in rows] == ["time", "2003-06-16T00:00:00", "2003-07-16T12:00:00", "2003-08-16T12:00:00"]
    mean = [float(row[rows[0].index("mean")]) for row in rows[1:]]
    assert np.allclose(mean, europe.astype("f8").weighted(np.cos(np.radians(europe.lat))).mean(("lat", "lon")), rtol=1e-14)
    assert (folder / "july.png").read_bytes().startswith(b"\x89PNG")
    salvaged, good = xarray.open_zarr(folder / "salvaged.zarr", consolidated=False).tas, np.arange(24) != 6
    assert salvaged[6].isnull().all() and np.array_equal(salvaged[good], climate.tas[good], equal_nan=True)


def add_versitygw(folder):
    program, why = find_versitygw()
    if not program:
        pytest.skip(why)
    (folder / "bin/versitygw").symlink_to(program)


def run_session(session, folder):
    for part in ("\n" + session).split("\n$ ")[1:]:
        command, _, shown = part.partition("\n")
        done = shell(command, folder)
        assert done.returncode == 0, (command, done.stderr)
        assert without_numbers(done.stdout + done.stderr) == without_numbers(shown), command


# ---- the other blocks ----

RUN_BY = {("README.md", "c"): "examples/readme.cmake",  # compiled and run as examples/readme.c
          ("README.md", "sh"): "test_shell",
          ("docs/shell.md", "console"): "test_shell",
          ("docs/stores.md", "console"): "test_shell",
          ("docs/build.md", "cmake"): "tests/embed",
          ("docs/cpp.md", "cpp"): "tests/cxx/run",
          ("docs/python.md", "toml"): "tests/python/test_errors.py",
          **{("docs/fortran.md", language): "tests/embed" for language in ("fortran", "bash", "cmake")},
          **{(page, "python"): "tests/python/test_documents.py"
             for page in PAGES if page in ("README.md", "python/README.md", "docs/python.md") or re.match(r"docs/python/[^/]+$", page)}}


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.reason], ids=lambda block: f"{block.page}:{block.line}")
def test_not_run(block):
    pytest.skip(f"{block.page}:{block.line}: {block.reason}")


def test_no_other_block():
    """A block of another kind, or in another document, needs a test that runs it, or a comment that says why it cannot run. Diagrams
    are blocks of text. In the folders are all documents."""
    assert {(block.page, block.language) for block in BLOCKS if not block.reason and block.language != "text"} == set(RUN_BY)
    for document in DOCUMENTS:
        fences = re.findall(r"^.*(?:```|~~~).*$", document.read_text(), re.M)
        assert all(line.startswith("```") for line in fences) and len(fences) % 2 == 0, document  # no block in a list or quote
    tracked = subprocess.run(["git", "ls-files", "*.md", "*.rst", "*.adoc"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode == 0 and tracked.stdout:
        assert set(tracked.stdout.split()) <= {str(d.relative_to(ROOT)) for d in DOCUMENTS}


def test_manual_shows_only_examples():
    """The programs in man pages are those in examples/, which are compiled, run and compared."""
    programs = {re.sub(r"\s+", "", p.read_text()) for p in (ROOT / "examples").glob("**/*.c")}
    pages = [p for p in (ROOT / "man").iterdir() if "#include" in p.read_text()]
    assert len(pages) > 40
    for page in pages:
        for shown in re.findall(r"^\.Bd -literal\n(.*?)^\.Ed", page.read_text(), re.M | re.S):
            for escape, char in ((r"\&", ""), (r"\-", "-"), (r"\(aq", "'"), (r"\(ga", "`"), (r"\(ha", "^"),
                                 (r"\(ti", "~"), (r"\e", "\\")):
                shown = shown.replace(escape, char)
            shown = re.sub(r"\\\[u([0-9A-F]+)\]", lambda m: chr(int(m[1], 16)), shown)
            text = re.sub(r"\s+", "", shown)
            if "#include" in text:
                assert any(text in program for program in programs), page.name
            elif not text.startswith("typedef"):
                assert text == "ccprogram.c$(pkg-config--cflags--libszarrc)", page.name  # tests/embed/run_installed


# ---- commands that sentences mention ----

def find_mentioned():
    for document in DOCUMENTS:
        for span in re.findall(r"`(zarrc [^`\n]*)`", document.read_text()):
            yield document.name, span


def test_mentioned_commands_exist():
    options = run("help", "options").text
    helps = {command: run(command, "--help").text + options for command in COMMANDS}
    found = list(find_mentioned())
    assert len(found) > 5
    for document, span in found:
        words = span.partition("|")[0].split()[1:]
        if words[0].isupper() or words[0].startswith("-"):
            continue
        assert words[0] in helps, (document, span)
        for word in words[1:]:
            option = re.match(r"--?[a-z][\w-]*", word)
            if option:
                assert re.search(rf"(?<![\w-]){re.escape(option[0])}(?![\w-])", helps[words[0]]), (document, span)
