"""scripts/zarr-suite: --why tells each batch that zarr-python's own pipeline does, --buffer counts arrays of our buffer."""
import importlib.machinery
import importlib.util
import os
import pathlib
import sys
import textwrap

import pytest

import zarrc

pytest.importorskip("zarr")
SCRIPT = pathlib.Path(__file__).parents[2] / "scripts/zarr-suite"
TEST = """
    import numpy as np, zarr

    class Mine(zarr.codecs.BytesCodec):
        pass

    def test_lacking(tmp_path):
        assert zarr.create_array(tmp_path / "y", data=np.arange(16), chunks=4)[:4].tolist() == [0, 1, 2, 3]
        z = zarr.create_array(tmp_path / "z", data=np.arange(16), chunks=4, serializer=Mine())
        assert z[:4].tolist() == [0, 1, 2, 3]
    """


@pytest.fixture
def suite(monkeypatch):
    """The script as a module. What it does to the environment is undone."""
    if not SCRIPT.exists():
        pytest.skip("the scripts are not here")
    monkeypatch.setenv("ZARR_SUITE_WHY", "")
    monkeypatch.setenv("ZARR_SUITE_BUFFER", "")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader = importlib.machinery.SourceFileLoader("zarr_suite", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("zarr_suite", loader))
    loader.exec_module(module)
    return module


@pytest.mark.parametrize("why", [None, "why.txt"])
def test_why(suite, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["zarr-suite", *(["--why", why] if why else [])])
    suite.arguments()
    told = str(tmp_path / why) if why else ""
    assert os.environ["ZARR_SUITE_WHY"] == told
    assert suite.environment(tmp_path, suite.TRIVIAL)["ZARR_SUITE_WHY"] == ""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "test_it.py").write_text(textwrap.dedent(TEST))
    monkeypatch.setenv("PYTHONPATH", str(pathlib.Path(zarrc.__file__).parents[1]))
    (tmp_path / "plug").mkdir()
    suite.distribution(tmp_path / "plug", "zarrc", "zarrc_hook.pipeline:ZarrcCodecPipeline")
    env = suite.environment(tmp_path, suite.OURS)
    ends, _ = suite.run(sys.executable, tree, env, ["test_it.py"], tmp_path / "log.jsonl", 0)
    assert {name: end for name, (end, _) in ends.items()} == {"test_it.py::test_lacking": "passed"}, (tmp_path / "log.out").read_text()
    lines = (tmp_path / why).read_text().splitlines() if why else []
    assert all("test_lacking" in line and "codec test_it.Mine" in line for line in lines) and bool(lines) == bool(why)
    assert {file.name for file in tmp_path.iterdir()} <= {"tree", "plug", "log.jsonl", "log.out", "pytest", *([why] if why else [])}


@pytest.mark.parametrize("more", [[], ["--buffer"]])
def test_buffer(suite, more, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["zarr-suite", *more])
    suite.arguments()
    (tmp_path / "test_it.py").write_text(textwrap.dedent(TEST))
    monkeypatch.setenv("PYTHONPATH", str(pathlib.Path(zarrc.__file__).parents[1]))
    (tmp_path / "plug").mkdir()
    suite.distribution(tmp_path / "plug", "zarrc", "zarrc_hook.pipeline:ZarrcCodecPipeline", "zarrc_hook.buffer:ZarrcNDBuffer")
    assert "ZARR_NDBUFFER" not in suite.environment(tmp_path, suite.TRIVIAL)
    ends, stats = suite.run(sys.executable, tmp_path, suite.environment(tmp_path, suite.OURS), ["test_it.py"], tmp_path / "log.jsonl", 1)
    assert [end for end, _ in ends.values()] == ["passed"], (tmp_path / "log.out").read_text()
    assert (stats["buffers"] > 0) == bool(more)
