"""Limits: each can be raised by the user who hits it, by --limit and by ZARRC_LIMITS."""
import json

import pytest


def document(shape, **more):
    return json.dumps({
        "zarr_format": 3, "node_type": "array", "shape": [shape], "data_type": "uint8", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [shape]}},
        "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}], **more})


def store(tmp_path, text):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/zarr.json").write_text(text)
    return tmp_path / "a"


def nest(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


HITS = {
    "chunk_bytes": ("17G", document(1 << 34)),
    "json_depth": ("2000", document(4, attributes="NESTED").replace('"NESTED"', '{"x":' + "[" * 1500 + "]" * 1500 + "}")),
    "string_bytes": ("80M", document(4, attributes={"x": "y" * (65 << 20)})),
    "json_tokens": ("5M", document(4, attributes={"x": [0] * ((4 << 20) + 1)})),
}


@pytest.mark.parametrize("name", HITS)
def test_a_limit_is_raised(zarrc, tmp_path, name):
    value, text = HITS[name]
    a = store(tmp_path, text)
    more = ["--limit", "metadata_bytes=1G"]
    failed = zarrc("cat", *more, f"{a}[0]", code=4)
    assert f"(limit {name} is" in failed.err and f"--limit={name}=VALUE" in failed.err
    assert zarrc("cat", *more, f"--limit={name}={value}", f"{a}[0]").text == "0\n"
    assert zarrc("cat", f"{a}[0]", env={"ZARRC_LIMITS": f"metadata_bytes=1G,{name}={value}"}).text == "0\n"


def test_defaults_take_what_zarr_python_writes(zarrc, tmp_path):
    """Nested 900 deep, an attribute and a text of 2 MB: far beyond the untrusted limits."""
    a = store(tmp_path, document(4, attributes={"deep": nest(900), "xml": "x" * 2_000_000}))
    assert zarrc("cat", f"{a}[0]").text == "0\n"
    for option in ("json_depth", "string_bytes"):
        assert f"limit {option} " in zarrc("cat", "--untrusted", "--limit",
                                           "string_bytes=64M" if option == "json_depth" else "json_depth=1000",
                                           f"{a}[0]", code=4).err
    zarrc("cat", "--untrusted", "--limit=string_bytes=64M,json_depth=1000", f"{a}[0]")
    assert "limit" in zarrc("cat", "--untrusted", f"{a}[0]", code=4,
                            env={"ZARRC_LIMITS": "string_bytes=64M,json_depth=1000"}).err


@pytest.mark.parametrize("text, message", [
    ("chunk_byte=1G", '"chunk_byte" is not a limit; the limits are metadata_bytes,'),
    ("chunk_bytes", '"chunk_bytes": =VALUE is missing'),
    ("chunk_bytes=0", '"0" is not a number from 1 to'),
    ("chunk_bytes=1X", '"1X" is not a number'),
    ("rank=65", '"65" is not a number from 1 to 64'),
    ("json_depth=8G", '"8G" is not a number from 1 to 4294967295'),
])
def test_wrong_limits(zarrc, tmp_path, text, message):
    assert message in zarrc("info", f"--limit={text}", tmp_path, code=2).err
    assert message in zarrc("info", tmp_path, code=2, env={"ZARRC_LIMITS": text}).err


def test_create_keeps_its_own_limits(zarrc, tmp_path):
    big = ["create", "-t", "u1", "--shape=2048", "--chunks=2048"]
    failed = zarrc(*big, "--limit=chunk_bytes=1K", tmp_path / "a", code=4)
    assert "a chunk of 2048 bytes (limit chunk_bytes is 1024)" in failed.err
    assert not (tmp_path / "a").exists()
    failed = zarrc(*big, "--shards=2048", "--limit=chunks_per_shard=8", "--chunks=2", tmp_path / "a", code=4)
    assert "limit chunks_per_shard is 8" in failed.err
    assert zarrc(*big, tmp_path / "a").err == ""


def test_create_warns_of_readers(zarrc, tmp_path):
    found = zarrc("create", "-t", "u1", "--shape=3000000000", "--chunks=3000000000", "--limit=chunk_bytes=8G",
                  tmp_path / "a").err
    assert "a reader with default limits may refuse this array" in found and "chunk_bytes is 2147483648" in found
