"""The man pages and completions in the tree are those that the program writes, and pass the syntax checks."""
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


def test_completions_are_fresh(pages):
    assert contents(pages / "completions") == contents(ROOT / "cli/completions"), AGAIN


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


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
def test_zsh_completion_parses(pages):
    subprocess.run(["zsh", "-n", pages / "completions/_zarrc"], check=True)


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
def test_fish_completion_parses(pages):
    subprocess.run(["fish", "-n", pages / "completions/zarrc.fish"], check=True)
