"""The blocks of Python in the documents run."""
import ast
import asyncio
import re
from pathlib import Path

import zarrc

ROOT = Path(__file__).parents[2]


def blocks(name):
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / name).read_text(), re.M | re.S)


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


def test_pipeline(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    block, _ = blocks("docs/python.md")
    zarrc.pipeline_stats(reset=True)
    run(block)
    assert "'fallback_chunks': 0" in capsys.readouterr().out


def test_python_md(path, numbers):
    _, block = blocks("docs/python.md")
    z = zarrc.create_array(path, data=numbers.repeat(2, 0)[:120], chunks=(10, 10))
    rows = run(block, z=z)["rows"]
    assert len(rows) == 100 and (rows[7] == z[7]).all()
