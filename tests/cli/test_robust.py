"""The program's environment: locale, closed pipes, full disks, signals, terminals."""
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import zarr

from conftest import PROGRAM, pseudo_terminal

pytestmark = pytest.mark.zarr_makes_input


@pytest.fixture
def array(tmp_path):
    zarr.save_array(tmp_path / "a", np.linspace(0, 1, 50000))
    return tmp_path / "a"


@pytest.fixture(scope="session")
def german(tmp_path_factory):
    """A locale whose decimal point is a comma."""
    if not shutil.which("localedef"):
        pytest.skip("localedef is not installed")
    folder = tmp_path_factory.mktemp("locale")
    subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", folder / "de_DE.UTF-8"],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if not (folder / "de_DE.UTF-8").exists():
        pytest.skip("localedef has no source for de_DE")
    return {"LOCPATH": str(folder), "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"}


def test_locale_changes_nothing(zarrc, array, german):
    proof = subprocess.run(["printf", "%.1f", "0"], env={**os.environ, **german},
                           stdout=subprocess.PIPE, text=True)
    commands = [["cat", array], ["cat", "-Fjson", array], ["info", "--json", array],
                ["info", array], ["cat", "--mem=1.5M", array], ["help"]]
    for command in commands:
        assert zarrc(*command, env=german).out == zarrc(*command).out
    assert proof.returncode == 0
    zarrc("create", array.parent / "b", "--shape=2", "--dtype=f8", "--fill=0.5", env=german)
    assert zarr.open_array(array.parent / "b").fill_value == 0.5


def test_full_disk(array, full):
    for arguments in (["cat", array], ["cat", "-Fraw", array], ["info", array], ["--help"],
                      ["cat", "--json", array], ["info", "--json", array], ["list"]):
        with open(full, "wb") as disk:
            done = subprocess.run([PROGRAM, *arguments], stdout=disk, stderr=subprocess.PIPE)
        assert done.returncode == 3, arguments
        assert done.stderr.decode().count("cannot write to stdout: No space left on device") == 1


def test_full_disk_of_export(zarrc, array, full):
    assert "No space left" in zarrc("export", "-Fraw", array, full, code=3).err


@pytest.mark.parametrize("arguments", [
    ["cat"], ["cat", "-Fraw"], ["cat", "--json"], ["info"], ["info", "--json"], ["ls"], ["tree", "--json"],
    ["verify", "--json"], ["attrs", "list", "--json"], ["export", "-Fraw", None, "/dev/stdout"], ["plot", "-o", "-"],
    ["diff", "--json", None, None], ["explain"], ["list"], ["--help"]], ids=lambda a: "-".join(map(str, a)))
def test_closed_pipe(array, arguments):
    """Nothing is printed, and the exit code is that of a program that SIGPIPE ends."""
    if None in arguments:
        arguments = [array if a is None else a for a in arguments]
    elif arguments[0] not in ("list", "--help"):
        arguments = [*arguments, array]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([PROGRAM, *arguments], stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert done.stderr == b"" and done.returncode == 141


def test_closed_stdout_and_stdin(array):
    done = subprocess.run(["/bin/sh", "-c", 'exec "$0" cat "$1" >&-', PROGRAM, array],
                          stderr=subprocess.PIPE)
    assert done.returncode == 3
    done = subprocess.run(["/bin/sh", "-c", 'exec "$0" info "$1" <&-', PROGRAM, array],
                          stdout=subprocess.PIPE)
    assert done.returncode == 0


def wait_for_handler(process, number):
    """Until the program catches a signal."""
    while True:
        text = Path(f"/proc/{process.pid}/status").read_text()
        if int(text.split("SigCgt:")[1].split()[0], 16) >> (number - 1) & 1:
            return
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt(tmp_path, number):
    """Interrupts cat of 40 GB of missing chunks."""
    zarr.create_array(tmp_path / "a", shape=(5 * 10**9,), chunks=(10**6,), dtype="f8")
    process = subprocess.Popen([PROGRAM, "cat", "-Fraw", "--mem=64M", tmp_path / "a"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    wait_for_handler(process, number)
    process.send_signal(number)
    assert process.wait(20) == 130
    assert process.stderr.read().decode().count("interrupted") <= 1


@pytest.mark.parametrize("given", [b"", b"x" * 100, b"\x93NUMPY"])
@pytest.mark.parametrize("command", [["append", "a", "-"], ["attrs", "merge", "a", "-"]])
def test_interrupt_of_stdin(tmp_path, command, given):
    """A command that waits for a silent pipe can be interrupted."""
    zarr.create_array(tmp_path / "a", shape=(8, 8), chunks=(4, 4), dtype="u1")
    process = subprocess.Popen([PROGRAM, *command], cwd=tmp_path, stdin=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    process.stdin.write(given)
    process.stdin.flush()
    wait_for_handler(process, signal.SIGINT)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130, process.stderr.read()
    process.stdin.close()


def test_signal_just_before_a_wait(tmp_path):
    """A signal whose handler has returned before the program waits still ends the wait."""
    library = tmp_path / "signal_first.so"
    compiler = subprocess.run(["cc", "-shared", "-fPIC", "-o", library, Path(__file__).with_name("signal_first.c"), "-ldl"])
    assert compiler.returncode == 0
    zarr.create_array(tmp_path / "a", shape=(8, 8), chunks=(4, 4), dtype="u1")
    zarr.create_array(tmp_path / "large", shape=(300000,), chunks=(300000,), dtype="u1")
    fifos = [f"fifo{i}" for i in range(5)]
    for name in fifos:
        os.mkfifo(tmp_path / name)
    full = os.pipe()
    os.set_blocking(full[1], False)
    while select.select([], [full[1]], [], 0)[1]:
        os.write(full[1], bytes(4096))
    os.set_blocking(full[1], True)
    started = []
    for given, *command in ((b"", "append", "a", "-"), (b"\x93NUMPY", "append", "a", "-"),
                            (b"[[1,", "append", "--format=json", "a", "-"), (b"", "append", "a", fifos[0]),
                            (b"\x93NUMPY\1\0", "import", "-", "b"), (b"", "import", fifos[1], "b"),
                            (b"{", "attrs", "merge", "a", "-"), (b"{", "attrs", "merge", "a", "@" + fifos[2]),
                            (b"", "export", "-Fraw", "a", fifos[3]), (b"", "plot", "-o", fifos[4], "a"),
                            (None, "cat", "a"), (None, "cat", "-Fraw", "large"), (None, "info", "a")):
        process = subprocess.Popen([PROGRAM, *command], cwd=tmp_path, env={**os.environ, "LD_PRELOAD": str(library)},
                                   stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
                                   stdout=full[1] if given is None else None, stderr=subprocess.PIPE)
        started.append((process, command))
        if given:
            process.stdin.write(given)
            process.stdin.flush()
    try:
        for process, command in started:
            assert process.wait(20) == 130, (command, process.stderr.read())
            assert process.stderr.read().lower().count(b"interrupted") == 1, command
    finally:
        for process, _ in started:
            process.kill()
            process.wait()
            process.stderr.close()
            if process.stdin:
                process.stdin.close()
        os.close(full[0])
        os.close(full[1])
    assert sorted(os.listdir(tmp_path)) == ["a", *fifos, "large", library.name]


def test_interrupted_export_leaves_nothing(tmp_path):
    zarr.create_array(tmp_path / "a", shape=(5 * 10**9,), chunks=(10**6,), dtype="f8")
    process = subprocess.Popen([PROGRAM, "export", "--mem=64M", tmp_path / "a", tmp_path / "o.npy"],
                               stderr=subprocess.PIPE)
    for _ in range(200):
        if len(os.listdir(tmp_path)) > 1:
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    assert os.listdir(tmp_path) == ["a"]


def terminal(arguments, env=None):
    """Runs zarrc with stderr on a terminal, and returns the output on the terminal."""
    main, side = pseudo_terminal()
    environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    environment.update({"TERM": "xterm", **(env or {})})
    process = subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.DEVNULL, stderr=side,
                               env=environment)
    os.close(side)
    painted = b""
    while True:
        try:
            block = os.read(main, 4096)
        except OSError:
            break
        if not block:
            break
        painted += block
    process.wait(60)
    os.close(main)
    return painted.decode()


def test_colours_on_a_terminal():
    assert "\033[1;31m" in terminal(["info", "/nonexistent"])
    assert "\033[" not in terminal(["info", "/nonexistent"], {"NO_COLOR": "1"})
    assert "\033[" not in terminal(["info", "/nonexistent"], {"TERM": "dumb"})
    assert "\033[" not in terminal(["info", "--color=never", "/nonexistent"])


def test_progress_bar_on_a_terminal(tmp_path):
    zarr.create_array(tmp_path / "a", shape=(4 * 10**7,), chunks=(10**6,), dtype="f8")
    painted = terminal(["export", "-Fraw", "--mem=40M", "--progress=bar", str(tmp_path / "a"),
                        str(tmp_path / "out")])
    if painted:  # no bar is shown if the command takes less than half a second
        assert "\r" in painted and "%" in painted and "/s" in painted


def test_progress_as_json(zarrc, tmp_path):
    import json
    zarr.create_array(tmp_path / "a", shape=(10**6,), chunks=(10**5,), dtype="f8")
    err = zarrc("export", "-Fraw", "--progress=json", tmp_path / "a", tmp_path / "o").err
    last = json.loads(err.splitlines()[-1])
    assert last["progress"] == "export" and last["done_bytes"] == last["total_bytes"] == 8 * 10**6


def test_quiet_says_nothing(zarrc, tmp_path):
    zarr.save_array(tmp_path / "a", np.arange(3))
    assert zarrc("export", "-q", tmp_path / "a", tmp_path / "a.npy").err == ""


def test_untrusted_limits(zarrc, tmp_path):
    zarr.create_array(tmp_path / "a", shape=(10**9,), chunks=(10**8,), dtype="f8")
    assert zarrc("cat", f"{tmp_path}/a[0]").text == "0.0\n"
    assert "chunk_bytes" in zarrc("cat", "--untrusted", f"{tmp_path}/a[0]", code=4).err


def test_limit_of_variable_chunks(zarrc, tmp_path):
    """A chunk of text gets no more memory than --mem allows, or --limit."""
    words = np.array(["x" * 2000] * 4096, dtype=np.dtypes.StringDType())
    a = zarr.create_array(tmp_path / "a", shape=words.shape, chunks=words.shape, dtype="string")
    a[:] = words
    found = zarrc("cat", "--mem=8M", f"{tmp_path}/a[0]", code=4).err
    assert "limit variable_chunk_bytes" in found and "--limit=variable_chunk_bytes=VALUE" in found
    for options in (["--mem=8M", "--limit", "variable_chunk_bytes=16M"], ["--mem=64M"], []):
        assert zarrc("cat", *options, f"{tmp_path}/a[0]").text.strip() == "x" * 2000
    assert "variable_chunk_bytes" in zarrc("cat", "--limit=variable_chunk_bytes=1M", f"{tmp_path}/a[0]",
                                           code=4).err


def test_unsupported_codec_is_named(zarrc, tmp_path):
    import json
    zarr.create_array(tmp_path / "a", shape=(4,), chunks=(4,), dtype="i4")
    path = tmp_path / "a/zarr.json"
    document = json.loads(path.read_text())
    document["codecs"].append({"name": "zfp_or_so", "configuration": {}})
    path.write_text(json.dumps(document))
    err = zarrc("info", tmp_path / "a", code=6).err
    assert "zfp_or_so" in err and "[unsupported]" in err and "zarrc list" in err


def test_log_level(zarrc, array):
    assert zarrc("info", "--log-level=trace", array).out == zarrc("info", array).out


def test_lock_wait(zarrc, array):
    """A command that waits for another writer's lock ends at its limit and names the holder."""
    lock = array / "zarr.json.__lock"
    code = ("import fcntl, os, struct, sys, time; f = open(sys.argv[1], 'w'); "
            # F_OFD_SETLK with a struct flock over the whole file
            "fcntl.fcntl(f, 37, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0)); "
            "print(flush=True); time.sleep(60)")
    holder = subprocess.Popen([sys.executable, "-c", code, lock], stdout=subprocess.PIPE)
    try:
        holder.stdout.readline()
        failed = zarrc("attrs", "set", array, "a", "1", "--lock-wait=1", code=None)
        assert failed.code not in (0, 2)
        assert "zarr.json: no lock within 1 s" in failed.err
        assert f"process {holder.pid} (" in failed.err
    finally:
        holder.kill()
        holder.communicate()
    zarrc("attrs", "set", array, "a", "1", "--lock-wait=1")
    for wrong in ("0", "4000001", "soon"):
        assert "lock-wait" in zarrc("attrs", "set", array, "a", "1", "--lock-wait", wrong, code=2).err


def test_many_attributes(zarrc, tmp_path):
    """Time is linear in the number of attributes. A quadratic loop takes minutes for 100,000 of them."""
    n = 100000
    names = {f"name{i:06d}": i for i in range(n)}
    (tmp_path / "g").mkdir()
    (tmp_path / "g/zarr.json").write_text(
        json.dumps({"zarr_format": 3, "node_type": "group", "attributes": names}))
    (tmp_path / "new.json").write_text(json.dumps({"name000001": [1], "last": None} |
                                                  {f"more{i}": i for i in range(n)}))
    began = time.monotonic()
    assert len(zarrc("attrs", "list", tmp_path / "g").out.splitlines()) == n
    assert len(zarrc("info", tmp_path / "g").out.splitlines()) >= n
    zarrc("attrs", "merge", tmp_path / "g", f"@{tmp_path}/new.json")
    assert time.monotonic() - began < 30
    merged = json.loads((tmp_path / "g/zarr.json").read_text())["attributes"]
    assert merged == names | {"name000001": [1], "last": None} | {f"more{i}": i for i in range(n)}
    assert list(merged)[:3] == ["name000000", "name000001", "name000002"]


def test_verify_bounds_its_output(zarrc, tmp_path):
    zarr.create_array(tmp_path / "a", shape=1500, chunks=1, dtype="i4")[:] = np.arange(1, 1501)
    for chunk in (tmp_path / "a/c").iterdir():
        chunk.write_bytes(b"damaged")
    done = zarrc("verify", tmp_path / "a", code=1)
    assert len(done.out.splitlines()) == 1000
    assert "1500 faults" in done.err and "500 of them are not shown" in done.err
    assert len(zarrc("verify", "--show=0", tmp_path / "a", code=1).out.splitlines()) == 1500
    shown = zarrc("verify", "--json", "--show=3", tmp_path / "a", code=1).json
    shown = shown[0] if isinstance(shown, list) else shown
    assert len(shown["faults"]) == 3 and shown["n_faults"] == 1500 and not shown["valid"]


def make_colliding(n):
    """Texts that are equal under hashes that multiply by 31 or 33: each is made of "Aa" and "BB", or of "a" + "b" and
    "b" + "A"."""
    pairs = [("Aa", "BB"), ("bA", "ab")]
    bits = (n - 1).bit_length()
    return ["".join(pairs[i % 2][i // 2 >> b & 1] for b in range(bits)) for i in range(n)]


def test_hundred_thousand_keys(zarrc, tmp_path):
    """Names made to collide cost linear time: of attributes, which change and are compared in another order, and of
    members."""
    keys = make_colliding(100_000)
    for name, order in (("a", keys), ("b", keys[::-1])):
        (tmp_path / name).mkdir()
        (tmp_path / name / "zarr.json").write_text(json.dumps(
            {"zarr_format": 3, "node_type": "group", "attributes": dict.fromkeys(order, 1)}))
    array = {"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "uint8", "fill_value": 0,
             "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
             "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}]}
    (tmp_path / "c").mkdir()
    (tmp_path / "c/zarr.json").write_text(json.dumps(
        {"zarr_format": 3, "node_type": "group", "consolidated_metadata": {
            "kind": "inline", "must_understand": False, "metadata": dict.fromkeys(keys[:30_000], array)}}))
    new = json.dumps(dict.fromkeys(keys[::-1], 2)).encode()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert len(zarrc("attrs", "list", "a", cwd=tmp_path).text.splitlines()) == len(keys)
    zarrc("attrs", "merge", "a", "-", input=new, cwd=tmp_path)
    assert zarrc("attrs", "get", "a", keys[7], cwd=tmp_path).text == "2\n"
    zarrc("diff", "a", "b", code=1, cwd=tmp_path)
    zarrc("verify", "a", cwd=tmp_path)
    assert zarrc("info", "--json", "a", cwd=tmp_path).json["attributes"] == dict.fromkeys(keys, 2)
    zarrc("consolidate", "a", cwd=tmp_path)
    assert len(zarrc("ls", "c", cwd=tmp_path).text.splitlines()) == 30_000
    zarrc("verify", "c", code=1, cwd=tmp_path)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 30


def strace(log, *arguments, cwd):
    """Runs zarrc under strace, and returns its calls that change or sync files, without those for lock files."""
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    done = subprocess.run(["strace", "-f", "-o", log, "-e", "trace=rename,renameat,renameat2,unlink,unlinkat,syncfs",
                           PROGRAM, "-q", *arguments], cwd=cwd, stderr=subprocess.PIPE)
    if b"ptrace" in done.stderr:
        pytest.skip("this machine permits no ptrace")
    assert done.returncode == 0, (arguments, done.stderr)
    calls = [line.split(maxsplit=1)[1] for line in log.read_text().splitlines()]
    return [c for c in calls if c[0].isalpha() and not (c.startswith("unlink") and '__lock"' in c)
            and "AT_REMOVEDIR" not in c and "ENOENT" not in c]


@pytest.mark.parametrize("arguments", [
    ["create", "g/new", "--shape=4", "--dtype=u1"], ["create", "g/sub", "--group"],
    ["import", "-Fraw", "--shape=8", "--dtype=u1", "r.raw", "g/new"],
    ["import", "-Fraw", "--shape=8", "--dtype=u1", "--force", "r.raw", "g/a"], ["import", "-Fraw", "r.raw", "g/a[0:8]"],
    ["append", "-Fraw", "g/a", "r.raw"], ["resize", "g/a", "3"], ["attrs", "set", "g/a", "x", "1"], ["rm", "g/a"],
    ["rm", "-r", "g"], ["mv", "g/a", "g/b"], ["mv", "g/a", "other"], ["cp", "g/a", "g/b"], ["consolidate", "g"],
    ["reencode", "--chunks=2", "g/a", "g/b"], ["migrate", "g/two"]],
    ids=lambda a: "-".join(w for w in a if w[0] != "-").replace("/", ":"))
def test_all_is_flushed(zarrc, tmp_path, arguments):
    """The last thing that a command does to the store is to flush it, also after consolidated metadata is up to date."""
    (tmp_path / "r.raw").write_bytes(bytes(range(1, 9)))
    zarrc("create", "--group", "g", cwd=tmp_path)
    zarrc("import", "-Fraw", "--shape=8", "--chunks=4", "--dtype=u1", "r.raw", "g/a", cwd=tmp_path)
    zarrc("create", "--zarr-format=2", "--shape=4", "--dtype=u1", "g/two", cwd=tmp_path)
    zarrc("consolidate", "g", cwd=tmp_path)
    calls = strace(tmp_path / "log", *arguments, cwd=tmp_path)
    assert any(c.startswith(("rename", "unlink")) for c in calls)
    assert calls[-1].startswith("syncfs"), calls


def test_what_is_no_object_is_flushed(zarrc, tmp_path):
    """Files that a killed writer left."""
    zarrc("create", "--group", "g", cwd=tmp_path)
    (tmp_path / "g/zarr.json.__lock").write_bytes(b"")
    calls = strace(tmp_path / "log", "clean", "--age=0", "g", cwd=tmp_path)
    assert not (tmp_path / "g/zarr.json.__lock").exists()
    assert calls[-1].startswith("syncfs"), calls


def test_chunks_of_a_copy_reach_the_disk_before_its_metadata(zarrc, tmp_path):
    """Otherwise a loss of power could leave an array with chunks missing, which looks complete."""
    (tmp_path / "r.raw").write_bytes(bytes(range(1, 9)))
    zarrc("import", "-Fraw", "--shape=8", "--chunks=4", "--dtype=u1", "r.raw", "a", cwd=tmp_path)
    calls = strace(tmp_path / "log", "cp", "a", "b", cwd=tmp_path)
    chunks = [i for i, c in enumerate(calls) if c.startswith("rename") and '"1"' in c]
    document = [i for i, c in enumerate(calls) if c.startswith("rename") and '"zarr.json"' in c]
    assert chunks and document, calls
    assert any(c.startswith("syncfs") for c in calls[chunks[-1]:document[0]]), calls


@pytest.mark.parametrize("mode", [0o666, 0o600, 0o440])
def test_file_that_is_replaced_keeps_its_mode(zarrc, array, tmp_path, mode):
    out = tmp_path / "out.npy"
    out.write_bytes(b"old")
    out.chmod(mode)
    zarrc("export", "--force", array, out)
    assert out.stat().st_mode & 0o7777 == mode and out.read_bytes() != b"old"
    if os.geteuid() == 0:
        os.chown(out, 4711, 4712)
        zarrc("export", "--force", array, out)
        assert (out.stat().st_uid, out.stat().st_gid) == (4711, 4712)
