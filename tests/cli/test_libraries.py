"""Which libraries a program loads: those of remote stores only when it opens one."""

REMOTE = ("libcurl", "libssl", "libcrypto", "libexpat")


def test_local_paths_load_none(zarrc, tmp_path):
    zarrc("create", tmp_path / "x", "--shape=4,4", "--chunks=2,2", "--dtype=int16")
    for path in (tmp_path / "x", "/nowhere"):
        done = zarrc("info", path, code=None, env={"LD_DEBUG": "files"})
        assert "libzstd" in done.err  # the linker does tell
        assert not [name for name in REMOTE if name in done.err]
