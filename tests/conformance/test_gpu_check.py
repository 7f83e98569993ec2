"""scripts/gpu-check over the driver without a GPU: its scripts run, and find nothing wrong; what its reports say of codecs."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

from test_memory_kinds import TABLE

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/gpu"))
from recorder import summary  # noqa: E402

BUILD = pathlib.Path(os.environ["ZARRC_LIBRARY"]).resolve().parent.parent


@pytest.mark.skipif(not (BUILD / "lib/zarrc/v1/cuda.so").exists(), reason="a build without the CUDA plug-in")
@pytest.mark.skipif(not (BUILD / "tests/test_port_cuda").exists(), reason="a build without test_port_cuda, as of `make test`")
def test_rehearsal(tmp_path):
    done = subprocess.run([sys.executable, ROOT / "scripts/gpu-check", "--rehearse", "--build", BUILD, "--out", tmp_path,
                           "--patience", "3"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert done.stdout.count(" passed ") + done.stdout.count("not native") == 9
    codecs = json.loads((tmp_path / "report.json").read_text())["parts"]["codecs"]["codecs"]
    assert set(codecs) == {"host", "pinned", "managed", "cuda"}
    for kind, names in codecs.items():  # nvcomp_batch and zfp among them
        assert names == sorted(name for name, row in TABLE.items() if row[kind] != "-" and row["cuda"] != "-")


TESTS = """
import os, time
import pytest

@pytest.mark.parametrize("kind", ["host", "cuda"])
@pytest.mark.parametrize("name", ["bytes", "vlen-utf8", "json2", "json2 of numbers", "zfp", "zstd", "gzip"])
def test_kind(name, kind, record_property):
    if name in ("vlen-utf8", "json2"):
        return
    if (name, kind) == ("gzip", "cuda"):
        pytest.skip("for a reason")
    record_property("moved", True)
    assert (name, kind) != ("zfp", "host"), "wrong bytes"
    if (name, kind) == ("zstd", "cuda"):
        os._exit(1)

def test_other():
    pass
"""


def run_recorded(folder, **env):
    """The summary of a run of TESTS, which ends without a word in test_kind[zstd-cuda]."""
    (folder / "test_x.py").write_text(TESTS)
    subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "recorder", "-p", "no:cacheprovider", folder], check=False, capture_output=True,
                   env={**os.environ, "PYTHONPATH": str(ROOT / "tests/gpu"), "ZARRC_RECORD": str(folder / "told.jsonl"), **env})
    return summary(folder / "told.jsonl")


def test_codecs_of_tests_that_fail_or_do_not_end(tmp_path):
    """What a report lists are codecs of which no test failed, was skipped, or did not end."""
    told = run_recorded(tmp_path)
    assert {kind: set(names) for kind, names in told["codecs"].items()} == {"host": {"bytes", "json2", "zstd"}, "cuda": {"bytes", "json2", "zfp"}}
    assert [line.partition("::")[2].partition(":")[0] for line in told["wrong"]] == ["test_kind[zfp-host]", "test_kind[zstd-cuda]"]
    assert "wrong bytes" in told["wrong"][0] and "no end" in told["wrong"][1]


def test_no_test_begins_when_the_time_is_over(tmp_path):
    told = run_recorded(tmp_path, ZARRC_RECORD_UNTIL="1")
    assert told == {"skipped": 15, "wrong": [], "codecs": {}}
