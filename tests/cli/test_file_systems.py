"""File systems without locks, and stores whose files are symbolic links, as git-annex and DataLad make them."""
import ctypes
import errno
import os
import platform
import struct
import subprocess

import numpy as np
import pytest
import zarr

from conftest import PROGRAM

pytestmark = pytest.mark.zarr_makes_input

F_OFD_SETLK = 37
FCNTL, FLOCK = {"x86_64": (72, 73), "aarch64": (25, 32)}.get(platform.machine(), (None, None))


def locks_fail_with(code):
    """A function for a child: a filter of system calls answers fcntl(F_OFD_SETLK) and flock() with an errno."""
    load, equal, give = 0x20, 0x15, 0x06  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_RET|K
    fail, allow = 0x00050000 | code, 0x7fff0000  # SECCOMP_RET_ERRNO, SECCOMP_RET_ALLOW
    rows = [(load, 0, 0, 0), (equal, 3, 0, FLOCK), (equal, 0, 3, FCNTL), (load, 0, 0, 24), (equal, 0, 1, F_OFD_SETLK),
            (give, 0, 0, fail), (give, 0, 0, allow)]
    code_rows = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *row) for row in rows))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(rows), ctypes.addressof(code_rows)))
    libc = ctypes.CDLL(None, use_errno=True)

    def apply(keep=code_rows):
        if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, ctypes.byref(program), 0, 0) != 0:
            os._exit(99)

    return apply


def run(*args, code=None, **more):
    done = subprocess.run([PROGRAM, *map(str, args)], capture_output=True, text=True, timeout=60,
                          preexec_fn=None if code is None else locks_fail_with(code),
                          env={**os.environ, **more})
    if done.returncode == 99:
        pytest.skip("this machine refuses filters of system calls")
    return done


needs_filter = pytest.mark.skipif(FCNTL is None, reason="the numbers of this machine's system calls are not known")


@needs_filter
@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, 524])
def test_without_locks(tmp_path, code):
    place = tmp_path / "x.zarr"
    create = ("create", place, "--shape=10", "--dtype=int8")
    failed = run(*create, code=code)
    assert failed.returncode == 6 and "gives no locks (option locks)" in failed.stderr
    assert "--locks=none or ZARRC_LOCKS=none" in failed.stderr and "Unknown error" not in failed.stderr
    left = os.listdir(place) if place.exists() else []  # where another process may have a lock, the file stays
    assert len(left) == (code in (errno.ENOLCK, 524)) and all(name.endswith(".__lock") for name in left)
    assert run("--locks=none", *create, code=code).returncode == 0
    assert run("attrs", "set", place, "a", "1", code=code, ZARRC_LOCKS="none").returncode == 0
    assert zarr.open_array(place, mode="r").attrs["a"] == 1
    assert run("--locks=os", "attrs", "set", place, "a", "2", code=code, ZARRC_LOCKS="none").returncode == 6
    assert run("rm", "-r", place, "--locks=none", code=code).returncode == 0
    assert not place.exists()


def test_a_variable_with_another_word():
    for name, words in (("ZARRC_LOCKS", "os, none"), ("ZARRC_SYMLINKS", "within, deny, follow")):
        done = run("list", **{name: "maybe"})
        assert done.returncode == 2 and f'{name}: "maybe" is not one of {words}' in done.stderr


@pytest.mark.parametrize("annex", ["beside", "inside"])
def test_files_that_are_links(tmp_path, annex):
    store = tmp_path / "x.zarr"
    zarr.open_group(store, mode="w").create_array("a", data=np.arange(8), chunks=(4,))
    objects = (tmp_path if annex == "beside" else store) / ".git" / "annex"
    objects.mkdir(parents=True)
    for i, file in enumerate(sorted(file for file in store.rglob("*") if file.is_file() and ".git" not in file.parts)):
        file.rename(objects / str(i))
        file.symlink_to(os.path.relpath(objects / str(i), file.parent))
    show = ("cat", "--format=elements", store / "a")
    done = run(*show)
    if annex == "inside":
        assert done.returncode == 0 and done.stdout.split() == [str(i) for i in range(8)]
    else:
        assert done.returncode == 3
        target = os.readlink(store / "a" / "zarr.json")
        assert f'a/zarr.json to "{target}" leads out of the store (option symlinks)' in done.stderr
        assert "--symlinks=follow or ZARRC_SYMLINKS=follow" in done.stderr
    for done in (run(*show, "--symlinks=follow"), run(*show, ZARRC_SYMLINKS="follow")):
        assert done.returncode == 0 and done.stdout.split() == [str(i) for i in range(8)]
    done = run(*show, "--symlinks=deny", ZARRC_SYMLINKS="follow")
    assert done.returncode == 3 and "is not followed (option symlinks)" in done.stderr


def test_words_of_a_remedy_in_a_name(zarrc, tmp_path):
    """The remedy comes from the setting that the error names, not from its words, which a name can have."""
    for name in ("(option symlinks)", "(option locks)"):
        place = tmp_path / "x.zarr" / name
        place.mkdir(parents=True)
        (place / "zarr.json").mkdir()
        done = zarrc("info", place, code=None)
        assert name in done.err and "--symlinks" not in done.err and "--locks" not in done.err
