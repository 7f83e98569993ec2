"""scripts/gpu-check over the driver without a GPU: its scripts run, and find nothing wrong."""
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["ZARRC_LIBRARY"]).resolve().parent.parent


@pytest.mark.skipif(not (BUILD / "lib/zarrc/v1/cuda.so").exists(), reason="a build without the CUDA plug-in")
@pytest.mark.skipif(not (BUILD / "tests/test_port_cuda").exists(), reason="a build without test_port_cuda, as of `make test`")
def test_rehearsal(tmp_path):
    done = subprocess.run([sys.executable, ROOT / "scripts/gpu-check", "--rehearse", "--build", BUILD, "--out", tmp_path,
                           "--patience", "3"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert done.stdout.count(" passed ") + done.stdout.count("not native") == 7
