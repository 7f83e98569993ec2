"""The man pages in the tree are those that the program writes. They and the completions pass syntax checks, and complete."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from conftest import PROGRAM

ROOT = pathlib.Path(__file__).resolve().parents[2]
AGAIN = "stale: run `cmake --build build/dev --target docs_cli`"


@pytest.fixture(scope="module")
def pages(zarrc, commands, tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs")
    for place in ("man", "completions"):
        (folder / place).mkdir()
    for command in ["", *commands]:
        page = folder / "man" / f"zarrc{command and '-'}{command}.1"
        page.write_text(zarrc("help", "--man", *command.split()).text)
    for shell, name in {"bash": "zarrc.bash", "zsh": "_zarrc", "fish": "zarrc.fish"}.items():
        (folder / "completions" / name).write_text(zarrc("completion", shell).text)
    return folder


def contents(folder):
    return {p.name: p.read_text() for p in folder.iterdir()}


def test_man_pages_are_fresh(pages):
    made = contents(pages / "man")
    stored = {name: text for name, text in contents(ROOT / "man").items()
              if re.fullmatch(r"zarrc(-\w+)?\.1", name)}
    assert set(made) == set(stored), AGAIN
    assert [name for name in made if made[name] != stored[name]] == [], AGAIN


def test_status_is_fresh():
    done = subprocess.run([sys.executable, ROOT / "scripts/status", "--check", PROGRAM],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(not shutil.which("mandoc"), reason="mandoc is not installed")
def test_mandoc_finds_nothing(pages):
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning",
                           *sorted(map(str, (pages / "man").iterdir()))],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0 and done.stdout == ""


def test_pages_have_their_sections(pages):
    for path in (pages / "man").iterdir():
        text = path.read_text()
        for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "EXAMPLES", "SEE ALSO"):
            assert f".SH {section}\n" in text, (path.name, section)


def test_see_also_exists(pages):
    names = {p.stem for p in (pages / "man").iterdir()}
    for path in (pages / "man").iterdir():
        for name in re.findall(r"^\.BR (\S+) \(1\)", path.read_text(), re.M):
            assert name.replace("\\-", "-") in names, (path.name, name)


def test_commands_document_json(zarrc, commands, pages):
    for command in commands:
        assert ".SH JSON\n" in (pages / "man" / f"zarrc-{command}.1").read_text(), command


def complete(script, *words):
    """Returns the words that bash offers to complete the last word."""
    line = " ".join(words) + ('' if words[-1] else ' ""')
    code = (f"source '{script}'; COMP_WORDS=({line}); "
            f"COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _zarrc 2>/dev/null; "
            "printf '%s\\n' \"${COMPREPLY[@]}\"")
    return subprocess.run(["bash", "--norc", "-c", code], stdout=subprocess.PIPE, text=True,
                          check=False).stdout.split()


def test_bash_completion(pages, commands):
    script = pages / "completions/zarrc.bash"
    subprocess.run(["bash", "-n", script], check=True)
    assert set(complete(script, "zarrc", "")) == set(commands)
    assert complete(script, "zarrc", "inf") == ["info"]
    assert "--format" in complete(script, "zarrc", "cat", "--f")
    assert set(complete(script, "zarrc", "cat", "--format", "")) == {
        "text", "csv", "npy", "raw", "elements", "json"}
    assert complete(script, "zarrc", "cat", "--format", "el") == ["elements"]
    assert "--json" in complete(script, "zarrc", "ls", "--")


def run_shell(*words):
    """What a shell says that finds the program on its PATH."""
    return subprocess.run(words, env={**os.environ, "PATH": f"{os.path.dirname(PROGRAM)}:{os.environ['PATH']}"}, capture_output=True, text=True)


def test_installed_bash_completion():
    """It is that of the program on PATH. Without a program it fails, so that bash falls back to files."""
    script = ROOT / "cli/completions/zarrc.bash"
    assert run_shell("bash", "--norc", "-c", f"source {script}; complete -p zarrc; declare -f _zarrc").stdout.startswith(
        "complete -F _zarrc zarrc\n_zarrc ()")
    assert run_shell("bash", "--norc", "-c", f"PATH=/nowhere; source {script}").returncode == 1


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
def test_zsh_completion(pages):
    subprocess.run(["zsh", "-n", pages / "completions/_zarrc"], check=True)
    done = run_shell("zsh", "-f", "-c", f"fpath=({ROOT}/cli/completions); autoload -U _zarrc; CURRENT=2; _arguments() {{ :; }}; "
                                        "_describe() { print -l $commands; }; _zarrc; _zarrc")
    assert done.stdout.count("info:") == 2 and not done.stderr, "the first call, and one of the function that it defines"


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
def test_fish_completion(pages):
    subprocess.run(["fish", "-n", pages / "completions/zarrc.fish"], check=True)
    done = run_shell("fish", "--no-config", "-c", f"source {ROOT}/cli/completions/zarrc.fish; complete -C 'zarrc inf'; complete -C 'zarrc cat --format el'")
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["info", "elements"], done.stderr
