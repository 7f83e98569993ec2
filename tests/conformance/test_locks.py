"""TensorStore's lock protocol. TensorStore's processes and ours change parts of the same chunk and of
the same shard at the same time, and no change is lost. Each process owns some of the elements and
sets them in each round; every element must end at its last number. Processes must not increment the
same element: a read followed by a write would race in any implementation."""
import os
import subprocess
import sys
import time

import numpy as np
import pytest

import cases
import peers
from cases import LITTLE, sharding, zstd

ROUNDS = 60
KINDS = {"chunk": [LITTLE], "compressed": [LITTLE, zstd()],
         "shard": [sharding((2,), [LITTLE, zstd()])],
         "nested": [sharding((4,), [sharding((2,), [LITTLE])])]}

PROGRAM = """
import pathlib, sys, time
sys.path.insert(0, {support!r})
folder, me, go = pathlib.Path({folder!r}), {me}, pathlib.Path({go!r})
if {writer!r} == "tensorstore":
    import peers
    array = peers.open_tensorstore(folder)
    def put(at, value):
        array[at].write(value).result()
else:
    import numpy as np
    from zarrc_ctypes import Context
    from zarrc_selection import Selection
    array = Context(fake=None).store(str(folder)).open(pipeline={writer!r})
    def put(at, value):
        array.write(np.full((1,), value, "i4"), Selection.dims((16,), slice(at, at + 1)))
while not go.exists():
    time.sleep(0.002)
for turn in range(1, {rounds} + 1):
    for at in range(me, 16, {n}):
        put(at, turn * 100 + me)
"""


@pytest.mark.parametrize("kind", KINDS)
def test_three_processes(context, tmp_path, kind):
    folder, go = tmp_path / "array", tmp_path / "go"
    document = cases.document_v3("int32", 0, KINDS[kind], (16,), (16,))
    context.store(str(folder), create=True).create(document=document)
    writers = ["waves", "tensorstore", "serial"]
    processes = []
    for me, writer in enumerate(writers):
        text = PROGRAM.format(support=os.path.dirname(cases.__file__), folder=str(folder), me=me,
                              writer=writer, n=len(writers), rounds=ROUNDS, go=str(go))
        processes.append(subprocess.Popen([sys.executable, "-c", text], stderr=subprocess.PIPE))
    time.sleep(0.5)
    go.touch()
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()
    expected = np.array([ROUNDS * 100 + at % len(writers) for at in range(16)], "i4")
    array = context.store(str(folder)).open()
    assert array.read("i4").tolist() == expected.tolist()
    assert peers.read(peers.TENSORSTORE, folder).tolist() == expected.tolist()
    assert array.verify() == []
    left = [p.name for p in folder.rglob("*") if "lock" in p.name or "partial" in p.name]
    assert left == []
