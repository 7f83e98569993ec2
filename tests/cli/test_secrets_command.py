"""Credentials in URLs and options appear in nothing that the program writes: no message, no log, no JSON, no file and no name of one.
The store needs no network (tests/plugins/vault_store.c)."""
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECRET = "XyZZy42"


@pytest.fixture(scope="session")
def plugin(tmp_path_factory):
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler")
    out = tmp_path_factory.mktemp("plugin") / "vault.so"
    subprocess.run([compiler, "-shared", "-fPIC", f"-I{ROOT}/include", "-o", out, ROOT / "tests/plugins/vault_store.c"], check=True)
    return out


@pytest.fixture
def vault(zarrc, plugin, tmp_path):
    """Runs a command, in whose operands {} is the URL of the folder of stores; returns what it wrote."""
    (tmp_path / "token").write_text(f"{SECRET}\n")

    def call(*words, code=0, token=True, **more):
        url = f"vault://user:{SECRET}@host{tmp_path}"
        options = ["--store-option", f"vault:=token=@{tmp_path}/token"] if token else []
        given = [str(word).replace("{}", url).replace("KEY", f"key={SECRET}") for word in words]
        done = zarrc(*given, f"--plugin={plugin}", "-vv", "--log-level=trace", *options, code=code, **more)
        assert SECRET not in done.text + done.err
        return done

    yield call
    for path in tmp_path.rglob("*"):
        assert SECRET not in str(path)
        if path.is_file() and path.name != "token":
            assert SECRET.encode() not in path.read_bytes(), path


def test_commands(vault, tmp_path):
    vault("create", "{}/x.zarr/a?KEY", "--shape=10", "--chunks=3", "-t", "i4", "--fill=7")
    vault("attrs", "set", "{}/x.zarr/a?KEY", "unit", '"K"')
    (tmp_path / "n.txt").write_text("1\n2\n3\n4\n")
    vault("import", "--format=elements", "-t", "i4", "{}/n.txt".replace("{}", str(tmp_path)), "{}/x.zarr/b?KEY")
    vault("append", "--format=elements", "{}/x.zarr/b?KEY", tmp_path / "n.txt")
    assert vault("cat", "{}/x.zarr/b?KEY[2:6]").text.split() == ["3", "4", "1", "2"]
    for command in ("info", "info --stats", "info --json --stats", "ls -R", "ls --json", "explain", "verify", "consolidate", "clean"):
        vault(*command.split(), "{}/x.zarr/b?KEY" if command == "explain" else "{}/x.zarr?KEY")
    vault("cp", "{}/x.zarr/b?KEY", "{}/x.zarr/c?KEY")
    vault("mv", "{}/x.zarr/c?KEY", "{}/y.zarr/c?KEY")
    vault("reencode", "--chunks=2", "{}/y.zarr/c?KEY", tmp_path / "z.zarr/d")
    vault("diff", "{}/x.zarr/b?KEY", tmp_path / "z.zarr/d")
    vault("resize", "{}/x.zarr/b?KEY", "5")
    vault("rm", "{}/x.zarr/b?KEY")


@pytest.mark.parametrize("command", ["cp", "mv", "reencode"])
def test_unfinished_work(vault, tmp_path, command):
    (tmp_path / "n.txt").write_text("1\n2\n3\n4\n")
    vault("import", "--format=elements", "-t", "i4", "--chunks=1", tmp_path / "n.txt", "{}/x.zarr/b?KEY")
    vault(command, "{}/x.zarr/b?KEY", "{}/y.zarr/half?KEY", code=3)
    job = next(tmp_path.rglob(".zarrc-job"), None)
    assert "vault://host" in job.read_text()
    vault("info", "{}/y.zarr/half?KEY", code=None)
    vault("ls", "-R", "{}/y.zarr?KEY", code=None)
    vault("clean", "{}/y.zarr?KEY", code=None)
    vault("verify", "{}/y.zarr?KEY", code=None)


def test_requests_are_shown(vault):
    vault("create", "{}/x.zarr/a?KEY", "--shape=10", "-t", "i4")
    text = vault("info", "--stats", "{}/x.zarr/a?KEY").text
    assert "1 of them repeated, 2.0 KiB received, 0 B sent" in " ".join(text.split()), text
    for node in ("x.zarr/a", "x.zarr"):
        found = vault("info", "--stats", "--json", f"{{}}/{node}?KEY").json["requests"]
        assert found["requests"] > 0 and found["retries"] == 1 and found["bytes_received"] == 2048


def test_failures(vault, tmp_path):
    vault("create", "{}/x.zarr/a?KEY", "--shape=4", "-t", "i4")
    shown = f"vault://host{tmp_path}/x.zarr?key=***"
    assert shown in vault("info", "{}/x.zarr/b?KEY", code=3).err
    assert shown in vault("--json", "info", "{}/x.zarr/b?KEY", code=3).err
    assert shown in vault("info", "{}/x.zarr/a?KEY", token=False, code=3).err
    vault("info", "{}/x.zarr/denied?KEY", code=3)
    vault("info", "{}/x.zarr/lost?KEY", code=3)
    vault("create", "{}/x.zarr/lost?KEY", "--shape=4", "-t", "i4", code=3)
    vault("create", "{}/x.zarr/a?KEY", "--shape=4", "-t", "i4", code=5)
    vault("cat", "{}/x.zarr/a?KEY[9]", code=2)
    vault("cat", "{}/x.zarr/a/%zz?KEY", code=2)
    vault("info", "{}/none.zarr?KEY", code=3)
    vault("attrs", "{}/x.zarr/a?KEY", "unit=K", code=2)
    vault("{}/x.zarr?KEY", code=2)
    vault("list", "{}/x.zarr?KEY", "{}/x.zarr?KEY", code=2)
    vault("info", "--color={}/x.zarr?KEY", "x", code=2)
    vault("info", "{}/none.zip/a?KEY", code=3)
    vault("cp", "{}/x.zarr/a?KEY", "{}/x.zarr?KEY:/a", code=2)
    vault("cp", "{}/x.zarr?KEY", "{}/x.zarr/a/b?KEY", code=2)
    vault("info", "other://user:" + SECRET + "@h/x?KEY", code=6)


def test_options(zarrc, tmp_path):
    zarrc("create", "-q", tmp_path / "x.zarr/a", "--shape=4", "-t", "i4")

    def info(*options, code=0):
        words = [word for option in options for word in ("--store-option", option)]
        done = zarrc("info", tmp_path / "x.zarr/a", *words, code=code)
        assert SECRET not in done.text + done.err
        return done.err

    said = info(f"token={SECRET}", code=2)
    assert "stores of kind local have no option \"token\"; its options are durability, lock_wait_ms, locks and symlinks" in said
    assert "is one of os|none" in info(f"locks={SECRET}", code=2)
    assert "write name=value" in info(SECRET, code=2)
    assert "--store-option locks: the file" in info(f"locks=@{SECRET}", code=2)
    (tmp_path / "value").write_text("none\n")
    (tmp_path / "two").write_text("none\n\n")
    info(f"locks=@{tmp_path}/value")
    info(f"locks=@{tmp_path}/two", code=2)  # one newline is removed
    info("locks=wrong", "locks=none")  # the last counts
    info(f"{tmp_path}/x.zarr=locks=none")
    info(f"{tmp_path}=locks=wrong", code=2)
    for other in ("y.zarr", "x", "x.zarr/a", "x.zarr2"):  # of other stores
        info(f"{tmp_path}/{other}=locks={SECRET}")


FREED = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void search(void *p)
{
    if (p && memmem(p, malloc_usable_size(p), "hushhush", 8))
        fputs("FREED A SECRET\\n", stderr);
}
void free(void *p)
{
    static void (*next)(void *);
    if (!next)
        next = (void (*)(void *))dlsym(RTLD_NEXT, "free");
    search(p);
    next(p);
}
void *realloc(void *p, size_t n)
{
    void *to = malloc(n);
    size_t had = p ? malloc_usable_size(p) : 0;
    if (to && p)
        memcpy(to, p, had < n ? had : n);
    if (to)
        free(p);
    return to;
}
"""


@pytest.mark.parametrize("name", ["bearer_token", "headers"])
def test_options_leave_no_copies_in_freed_memory(zarrc, tmp_path, name):
    """A library that is loaded before all others searches what is freed. libcurl does not wipe its copy of a password."""
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler")
    (tmp_path / "freed.c").write_text(FREED)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", tmp_path / "freed.so", tmp_path / "freed.c", "-ldl"], check=True)
    value = "hush" * 300
    (tmp_path / "value").write_text(f'{{"X-Key": "{value}"}}' if name == "headers" else value)
    done = zarrc("info", "http://127.0.0.1:1/x", "--store-option", f"{name}=@{tmp_path}/value", "--store-option=tries=1",
                 code=None, env={"LD_PRELOAD": str(tmp_path / "freed.so")})
    assert "FREED" not in done.err and done.err
