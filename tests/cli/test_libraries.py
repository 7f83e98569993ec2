"""Which libraries a program loads: those of remote stores only when it opens one. tests/python/test_http.py has Python's."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

REMOTE = "libcurl|libssl|libcrypto|libexpat"
ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("ZARRC_BUILD", ROOT / "build/dev"))
REMOTE_URL = "http://127.0.0.1:9/x.zarr"  # refused


def find_remote(text):
    """The libraries of remote stores among those that the linker opens."""
    assert "libzstd" in text  # it does tell
    return set(re.findall(rf"\bfile=({REMOTE})\b", text))


def check_opens_remote(found, text):
    if "libcurl" not in found:
        assert "need libcurl" in text or "lacks libcurl" in text
        pytest.skip("this build or machine has no libcurl")


def test_the_program(zarrc, tmp_path):
    for place in ("x", "x.zip/x"):
        zarrc("create", tmp_path / place, "--shape=4,4", "--chunks=2,2", "--dtype=int16")
        assert not find_remote(zarrc("cat", tmp_path / place, env={"LD_DEBUG": "files"}).err)
    assert not find_remote(zarrc("info", "/nowhere", code=None, env={"LD_DEBUG": "files"}).err)
    done = zarrc("info", REMOTE_URL, "--store-option=tries=1", code=None, env={"LD_DEBUG": "files"})
    check_opens_remote(find_remote(done.err), done.err)


def test_a_program_in_c(tmp_path):
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler")
    (tmp_path / "x.c").write_text("""
        #include <stdio.h>
        #include <zarrc/zarrc.h>
        int main(int n, char **words)
        {
            zarr_error err = ZARR_ERROR_INIT;
            zarr_array *a = NULL;
            zarr_status st = n > 2 ? zarr_create_array(&a, NULL, words[1], "w", ZARR_FLOAT32, 1, (uint64_t[]){4}, &err)
                                   : zarr_open_array(&a, NULL, words[1], "r", &err);
            if (st != ZARR_OK)
                fprintf(stderr, "%s: %s\\n", zarr_status_text(st), err.message);
            zarr_array_free(a);
            return st != ZARR_OK;
        }
    """)
    subprocess.run([compiler, "-o", tmp_path / "x", tmp_path / "x.c", f"-I{ROOT}/include", f"-L{BUILD}/lib", "-lzarrc", f"-Wl,-rpath,{BUILD}/lib"],
                   check=True)

    def call(*words, code=0):
        done = subprocess.run([tmp_path / "x", *words], capture_output=True, text=True, env={**os.environ, "LD_DEBUG": "files"}, timeout=60)
        assert done.returncode == code, done.stderr[-500:]
        return done.stderr

    for place in ("x.zarr/a", "x.zarr.zip/a"):
        assert not find_remote(call(tmp_path / place, "create")) and not find_remote(call(tmp_path / place))
    text = call(REMOTE_URL, code=1)
    check_opens_remote(find_remote(text), text)
