"""scripts/gpu-check over the driver without a GPU: its scripts run, and find nothing wrong; what its reports say of codecs; which
parts a short run begins."""
import json
import os
import pathlib
import shutil
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
@pytest.mark.skipif(not (BUILD / "bench/kernels_speed").exists(), reason="a build without kernels_speed")
def test_rehearsal(tmp_path):
    done = subprocess.run([sys.executable, ROOT / "scripts/gpu-check", "--rehearse", "--build", BUILD, "--out", tmp_path,
                           "--patience", "3"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert done.stdout.count(" passed ") + done.stdout.count("not native") == 11
    parts = json.loads((tmp_path / "report.json").read_text())["parts"]
    speed = {row["name"].partition(", uint16")[0] for row in parts["zstd"]["rows"] if row["equal"]}
    assert {"zstd 3, all kernels", "zstd 1, nvCOMP", "blosc-zstd 3, all kernels", "zstd 3, k_zstd_execute"} < speed
    assert sum(name.endswith("of the CPU and a copy") for name in speed) == 3
    rows = parts["bench"]["rows"] + parts["nvcomp"]["rows"] + parts["zstd_bench"]["rows"]
    assert [row for row in rows if "not installed" not in row.get("failed", "not installed")] == []
    by_kernels = [row for row in rows if row["name"].partition(", ")[2].startswith("zstd=cuda.zstd")]
    assert len(by_kernels) == 2 and all(row["equal"] and row["fallback"] == row["decoded_host"] == 0 for row in by_kernels)
    codecs = parts["codecs"]["codecs"]
    assert set(codecs) == {"host", "pinned", "managed", "cuda"}
    for kind, names in codecs.items():  # nvcomp_batch and zfp among them
        assert names == sorted(name for name, row in TABLE.items() if row[kind] != "-" and row["cuda"] != "-")


# ---- short runs --------------------

CHANGED = {"kernels": ["1 a", "2 b"], "bench": ["2 b"], "python": [], "suite": ["1 a"], "gds": ["it has not passed on a GPU"]}
PLANS = {
    ("9",): """machine          2 s  from   0 s  always
zstd            65 s  from   2 s  always
damage          10 s  from  67 s  always
zstd_bench      90 s  from  77 s  always
kernels         25 s  from 167 s  2 commits since it ran
gds             10 s  from 192 s  it has not passed on a GPU
suite           45 s  from 202 s  1 a
bench          200 s  from 247 s  2 b
447 of 540 s
""",
    ("1.5",): """machine          2 s  from   0 s  always
zstd            65 s  from   2 s  always
damage          10 s  from  67 s  always
zstd_bench      90 s  left out    always
kernels         25 s  left out    2 commits since it ran
gds             10 s  from  77 s  it has not passed on a GPU
suite           45 s  left out    1 a
bench          200 s  left out    2 b
87 of 90 s
""",
    ("2", "bench", "python", "damage"): """damage          10 s  from   0 s  always
bench          200 s  left out    2 b
10 of 120 s
"""}


def gpu_check(*arguments, script=ROOT / "scripts/gpu-check"):
    done = subprocess.run([sys.executable, script, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("minutes", PLANS, ids=" ".join)
def test_plan(minutes, tmp_path):
    """A part is in it if it is always or if its paths have changed; it has a place if its estimate fits the time that is left."""
    (tmp_path / "changed.json").write_text(json.dumps(CHANGED))
    assert gpu_check("--dry-run", "--folder", tmp_path, "--minutes", *minutes) == PLANS[minutes]


def commit(folder, path, title):
    """Changes a file; the short hash of the commit."""
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(title)
    git = ["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.hooksPath=/dev/null"]
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", title], check=True)
    return subprocess.run([*git, "rev-parse", "--short", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.skipif(not shutil.which("git"), reason="there is no git")
def test_changed(tmp_path):
    """The commits to the paths of a part since it last passed, by the newest report that says so."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for name in ("scripts/gpu-check", "scripts/csource.py", "tests/gpu/recorder.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    first = commit(tmp_path, "plugins/cuda/a.c", "one")
    second = commit(tmp_path, "src/pipe/a.c", "two")
    passed = {"state": "passed"}
    for name, parts in {"h100-2026-01-02": {"kernels": {**passed, "tree": first}, "codecs": {**passed, "tree": first}},
                        "h200-2026-01-03": {"codecs": {**passed, "tree": second}, "kernels": {"state": "failed", "tree": second},
                                            "nvcomp": passed}}.items():
        commit(tmp_path, f"bench/results/{name}.json", json.dumps({"parts": parts}))
    third = commit(tmp_path, "plugins/cuda/a.c", "three")
    fourth = commit(tmp_path, "plugins/kernels/a.h", "four")
    said = gpu_check("--changed", script=tmp_path / "scripts/gpu-check")
    assert f"codecs: 2\n    {fourth} four\n    {third} three\n" in said
    assert f"kernels: 1\n    {fourth} four\n" in said
    assert "nvcomp: 1\n    it has not passed on a GPU\n" in said


@pytest.mark.skipif(not (BUILD / "lib/zarrc/v1/cuda.so").exists(), reason="a build without the CUDA plug-in")
def test_short_run(tmp_path):
    """A part whose estimate is longer than the time that is left does not begin."""
    (tmp_path / "changed.json").write_text(json.dumps(CHANGED))
    (tmp_path / "tree").write_text("0123abcd\n")
    gpu_check("--rehearse", "--build", BUILD, "--out", tmp_path, "--folder", tmp_path, "--minutes", "3", "zstd", "bench")
    parts = json.loads((tmp_path / "report.json").read_text())["parts"]
    assert list(parts) == ["zstd", "bench"]
    assert parts["zstd"]["state"] == "passed" and parts["zstd"]["rows"] and parts["zstd"]["tree"] == "0123abcd"
    assert parts["bench"]["state"] == "left out" and parts["bench"]["why"].startswith("it takes 200 s")


# ---- reports --------------------

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
