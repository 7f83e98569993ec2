"""Text of any length in the program: cat, reencode, diff, verify, create, what is refused."""
import numpy as np
import pytest
import zarr

WORDS = np.array([["", "a", "größe", "x" * 300], ["日本", "\"q\"\n", "\0z", "end"]], dtype=object)


@pytest.fixture(params=[(2, "C", None), (2, "F", None), (3, "C", None), (3, "C", (2, 4))], ids=str)
def strings(request, tmp_path):
    version, order, shards = request.param
    extra = {"order": order} if version == 2 else {"shards": shards}
    made = zarr.create_array(tmp_path / "s", shape=(2, 4), chunks=(1, 2), dtype=str,
                             zarr_format=version, fill_value="f", **extra)
    made[...] = WORDS
    return tmp_path / "s"


def test_cat(zarrc, strings):
    assert zarrc("cat", "--format=json", strings).json == WORDS.tolist()
    assert zarrc("cat", "--format=elements", f"{strings}[1,1:3]").text == '"\\"q\\"\\u000a"\n"\\u0000z"\n'
    assert zarrc("cat", "--format=csv", f"{strings}[1]").text == '日本\n"""q""\\x0a"\n\\x00z\nend\n'
    for form in ["raw", "npy"]:
        assert "--format=elements" in zarrc("cat", f"--format={form}", strings, code=None).err


def test_reencode_and_diff(zarrc, strings, tmp_path):
    out = tmp_path / "out"
    zarrc("reencode", strings, out, "--verify")
    assert zarr.open_array(out, mode="r")[...].tolist() == WORDS.tolist()
    assert zarrc("diff", strings, out).code == 0
    zarrc("verify", out)
    changed = zarr.open_array(out)
    changed[0, 1] = "b"
    assert zarrc("diff", strings, out, code=None).code != 0


def test_create(zarrc, tmp_path):
    zarrc("create", tmp_path / "n", "--dtype", "string", "--shape", "5", "--chunks", "2",
          "--fill", '"hi"')
    made = zarr.open_array(tmp_path / "n")
    made[1] = "größer"
    assert zarrc("cat", "--format=json", tmp_path / "n").json == ["hi", "größer", "hi", "hi", "hi"]
