"""The blocks of Python in the documents run. Those of a page in docs/python are one program, in its order."""
import ast
import asyncio
import doctest
import importlib.metadata
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from conftest import install
from documents import ROOT, read_blocks
from packaging.requirements import Requirement

import zarrc
from zarrc import _plugins

PAGES = sorted((ROOT / "docs/python").glob("*.md"))


def blocks(page):
    return [block.code for block in read_blocks(page, "python")]


def run(code, **names):
    """Runs a block, also one that waits at its top level."""
    names.update(zarrc=zarrc, asyncio=asyncio)
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    made = eval(compile(code, "<document>", "exec", flags=flags), names)
    if made is not None:
        asyncio.run(made)
    return names


def test_readme(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    block, = blocks("python/README.md")
    names = run(block)
    assert (names["part"][:10] == 42).all()
    assert "b" in capsys.readouterr().out


def test_front_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    block, = blocks("README.md")
    assert set(find_imports(block)) == {"zarrc"}
    zarr = pytest.importorskip("zarr")
    try:
        run(block)
        assert zarr.config.get("codec_pipeline.path") == "zarrc.ZarrcCodecPipeline"
    finally:
        zarrc.disable()
    assert capsys.readouterr().out == "[42. 42. 42. 42. 42.  0.  0.  0.  0.  0.]\n"


def test_pipeline(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    block, small, *_ = blocks("docs/python.md")
    zarrc.pipeline_stats(reset=True)
    names = run(block)
    run(small, **names)
    assert "'fallback_chunks': 0" in capsys.readouterr().out


def test_python_md(path, numbers):
    *_, block, _, _ = blocks("docs/python.md")
    z = zarrc.create_array(path, data=numbers.repeat(2, 0)[:120], chunks=(10, 10))
    rows = run(block, z=z)["rows"]
    assert len(rows) == 100 and (rows[7] == z[7]).all()


def test_own_codec(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, _, of_blocks, block, *_, of_controls = blocks("docs/python.md")
    run(of_blocks, np=np)
    run(of_controls, np=np)
    run(block)
    zarrc.create_array("x.zarr", data=np.arange(100), chunks=10, compressors="acme.deflate")
    assert (zarrc.open_array("x.zarr")[...] == np.arange(100)).all()


def test_own_implementation(path, monkeypatch):
    monkeypatch.setattr(_plugins.registry, "_rows", _plugins.registry._rows)  # it is there for this test only
    run(next(block for block in blocks("docs/python.md") if "plugins.Implementation" in block))
    array = zarrc.create_array(path, data=np.arange(100), chunks=10, compressors={"name": "gzip", "configuration": {"level": 1}})
    assert (array[...] == np.arange(100)).all() and "gzip@acme.zlib" in str(array.explain())
    array.store.set("c/3", b"damage")
    with pytest.raises(zarrc.ZarrcError, match="acme.zlib"):
        array[...]


def test_changes_joined(tmp_path):
    root = zarrc.create_group(tmp_path / "x.zarr")
    zarrc.consolidate_metadata(tmp_path / "x.zarr")
    run(blocks("docs/python.md")[-2], root=root)
    assert list(zarrc.open_consolidated(tmp_path / "x.zarr")) == ["step0", "step1", "step2"]


def find_imports(code):
    """The packages that a program imports."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (one.name.partition(".")[0] for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page(page, tmp_path):
    parts = blocks(page.relative_to(ROOT))
    assert parts and "assert" in parts[-1], "a page without a program, or one that checks no value"
    code = "\n".join(parts)
    missing = sorted({name for name in find_imports(code) if name not in ("zarrc", "zarrc_hook") and not importlib.util.find_spec(name)})
    if "cupy" in find_imports(code):  # over the driver without a GPU, also where there is one
        missing.remove("cupy") if "cupy" in missing else None
    if missing:
        pytest.skip(f"{', '.join(missing)}: make test-torch installs what the tests else leave out")
    (tmp_path / "page.py").write_text(code)
    environment = {"PYTHONPATH": install(tmp_path)}
    if "cupy" in find_imports(code):
        driver = Path(os.environ.get("ZARRC_BUILD") or Path(zarrc.__file__).parents[2]) / "tests/fakecuda"
        if not driver.exists():
            pytest.skip("the driver without a GPU is not built here")
        environment = {"PYTHONPATH": f"{environment['PYTHONPATH']}:{ROOT / 'tests/python/fakecupy'}", "LD_LIBRARY_PATH": str(driver)}
    link_packages(page.read_text(), tmp_path / "site")
    done = subprocess.run([sys._base_executable, "-S", "page.py"], cwd=tmp_path, capture_output=True, text=True, timeout=240,
                          env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr


def link_packages(text, folder):
    """The packages that a page tells to install, with what these require, and no others."""
    told = re.findall(r"The programs of this page need `pip install ([^`]+)`", text.replace("\n", " "))
    wanted = [Requirement(one) for one in ("numpy", *(shlex.split(told[0]) if told else ()))]
    seen = set()
    while wanted:
        one = wanted.pop()
        key = one.name.lower(), *sorted(one.extras)
        if key in seen:
            continue
        seen.add(key)
        try:
            found = importlib.metadata.distribution(one.name)
        except importlib.metadata.PackageNotFoundError:
            continue
        for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            if not (folder / top).exists():
                (folder / top).symlink_to(found.locate_file(top))
        more = [Requirement(text) for text in found.requires or ()]
        wanted += [each for each in more if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in ("", *one.extras))]


def examples_in_docstrings():
    """The blocks that follow a line that ends with two colons."""
    for path in sorted((ROOT / "python").glob("zarrc*/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node) or ""
                for block in re.findall(r"::\n\n((?: {4}.*\n|\n)+)", text + "\n"):
                    yield path.name, textwrap.dedent(block)


EXAMPLES = list(examples_in_docstrings())


@pytest.mark.parametrize("code", [code for _, code in EXAMPLES], ids=[name for name, _ in EXAMPLES])
def test_docstrings(code, tmp_path):
    done = subprocess.run([sys.executable, "-c", "import zarrc\n" + code], cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr


def test_docstrings_are_found():
    assert {name for name, _ in EXAMPLES} >= {"__init__.py", "plugins.py"}
    sources = "".join(path.read_text() for path in (ROOT / "python").glob("zarrc*/**/*.py"))
    assert sources.count(">>>") == sum(len(one.examples) for one in DOCTESTS.values())  # every one runs


def find_doctests():
    """{name: doctest} of the docstrings that have examples for the prompt of Python."""
    found = {}
    for path in sorted((ROOT / "python").glob("zarrc/*.py")):
        module = path.stem
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ">>>" in (text := ast.get_docstring(node) or ""):
                name = f"{module}.{node.name}"
                found[name] = doctest.DocTestParser().get_doctest(text, {"zarrc": zarrc, "np": np}, name, str(path), node.lineno)
    return found


DOCTESTS = find_doctests()


@pytest.mark.parametrize("example", DOCTESTS.values(), ids=DOCTESTS)
def test_examples_of_functions(example, tmp_path, monkeypatch):
    if "import zarr\n" in example.docstring:
        pytest.importorskip("zarr")
    monkeypatch.chdir(tmp_path)
    told = []
    failed, _ = doctest.DocTestRunner().run(example, out=told.append)
    assert not failed, "".join(told)


def test_reference_has_every_name():
    """Each name of `zarrc.__all__` is on a page of the reference."""
    text = "".join(page.read_text() for page in (ROOT / "docs/python/api").glob("*.md"))
    told = set(re.findall(r"\w+", text))
    assert set(zarrc.__all__) - told <= {"__version__", "config", "ZarrcError", "ZarrcWarning", "errors"}
