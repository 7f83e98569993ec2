"""Parsing, exit codes and texts that do not depend on data."""
import json
import os
import re
import subprocess
import time

import pytest
from conftest import PROGRAM, pseudo_terminal


def test_without_command(zarrc):
    result = zarrc(code=2)
    assert result.out == b""
    assert "a command is missing" in result.err and "commands:" in result.err


def test_unknown_command_has_suggestion(zarrc):
    result = zarrc("inof", code=2)
    assert 'unknown command "inof"; did you mean "info"?' in result.err
    assert "did you mean" not in zarrc("xyzzyxyzzy", code=2).err


def test_unknown_option_has_suggestion(zarrc):
    err = zarrc("cat", "--formt=csv", "x", code=2).err
    assert "unknown option --formt; did you mean --format?" in err
    assert "Try: zarrc cat --help" in err
    assert "unknown option -Z" in zarrc("cat", "-Z", code=2).err


@pytest.mark.parametrize("arguments, text", [
    (["cat"], "usage: zarrc cat [OPTION]... ARRAY[REGION]"),
    (["cat", "a", "b"], 'unexpected operand "b"'),
    (["cat", "--format"], "option --format needs a value"),
    (["cat", "-F"], "option -F needs a value"),
    (["cat", "--json=1", "a"], "option --json takes no value"),
    (["cat", "--format=xml", "a"], '"xml" is not one of text|csv|npy|raw|elements|json'),
    (["cat", "-j", "many", "a"], '"many" is not a whole number'),
    (["cat", "--mem=4X", "a"], '"4X" is not a size'),
    (["cat", "--mem=1", "a"], "at least 1M"),
    (["create", "x.zarr", "--dtype=f4", "--shape=1,b"], '"1,b" is not a list of lengths'),
])
def test_wrong_usage(zarrc, tmp_path, arguments, text):
    result = zarrc(*arguments, code=2, cwd=tmp_path)
    assert text in result.err
    assert result.out == b""
    assert list(tmp_path.iterdir()) == []


def test_forms_of_options(zarrc, tmp_path):
    store = tmp_path / "x.zarr"
    zarrc("create", store, "--shape", "4,4", "--dtype=int32", "-c2,2", "-C", "zstd:3", "-qv")
    info = zarrc("--json", "info", "--", store).json
    assert info["chunks"] == [2, 2]
    assert info["codecs"][1]["configuration"]["level"] == 3
    assert zarrc("info", store, "--json").json == info  # anywhere on the line
    zarrc("create", tmp_path / "y.zarr", "--shape=2", "--dtype=i4", "--fill", "-1")
    assert zarrc("info", "--json", tmp_path / "y.zarr").json["fill_value"] == -1


@pytest.mark.parametrize("text, code", [("4096K", 0), ("64M", 0), ("1.5GiB", 0), ("2GB", 0),
                                        ("64Q", 2), ("-1", 2), ("", 2), ("0x100000", 2)])
def test_sizes(zarrc, text, code):
    zarrc("version", "--mem", text, code=code)


def test_every_command_has_help(zarrc, commands):
    for command in commands:
        by_option, by_command = zarrc(command, "--help"), zarrc("help", command)
        assert by_option.out == by_command.out
        text = by_option.text
        assert text.startswith(f"zarrc {command} - ")
        assert f"usage: zarrc {command}" in text
        assert "\nexamples:\n" in text and "zarrc" in text.split("\nexamples:\n")[1]
        assert all(len(line) <= 80 for line in text.split("\nexamples:\n")[0].splitlines()[1:])


def test_options_of_all_commands(zarrc, commands):
    """They are listed once, not in the help of each command."""
    text = zarrc("help", "options").text
    assert all(len(line) <= 80 for line in text.splitlines()) and "--log-level=LEVEL" in text
    for command in ["--help", *commands]:
        shown = zarrc("help", *[command] * (command != "--help")).text
        assert "--log-level=LEVEL" not in shown and "zarrc help options" in shown


def test_no_letter_or_name_twice(zarrc, commands):
    for command in commands:
        words = [line.split()[0:2] for line in (zarrc("help", command).text + zarrc("help", "options").text).splitlines()
                 if line.startswith(("  -", "      --"))]
        names = [w.split("=")[0].rstrip(",") for pair in words for w in pair if w.startswith("-")]
        assert len(names) == len(set(names)), (command, names)


def find_options(zarrc, command):
    """(letter, name, value, text) of each option that the help shows."""
    text, found = zarrc("help", command).text.split("\nexamples:\n")[0], []
    for line in text.splitlines():
        option = re.match(r"  (?:-(\w), |    )--([\w-]+)(?:=(\S+))?\s*(.*)", line)
        if option:
            found.append([option[1], option[2], option[3], option[4]])
        elif found and re.match(r" {10,}\S", line):
            found[-1][3] += " " + line.strip()
    return found


# What an option is for, as its text begins or has it: one name each, in all commands.
THINGS = {"format": r"(output )?format( of FILE)? \(default|format of FILE", "zarr-format": "Zarr format of|format of the new metadata",
          "byte-order": "byte order of", "force": "replace an existing|replace existing|overwrite|delete the node at DEST|ignore nodes",
          "dry-run": "change nothing", "no-consolidate": "consolidated metadata of the groups above", "keep-fill": "_FillValue",
          "dtype": "data type", "show": "show at most N", "like": "that neither|that no option gives", "shape": "lengths of the dim",
          "chunks": "chunk lengths", "shards": "shard lengths", "attributes": "attributes, a JSON object", "order": "order of the elem",
          "codec": "the next codec", "memory": "memory (of|that) the elements|memory that elements", "axis": "the dimension that",
          "field": "one field of an array", "verify": "read both afterwards", "recursive": "everything below", "output": "write a PNG"}
# Letters that several options have, each in commands of its own.
SHARED = {"t": {"dtype", "text", "term"}, "l": {"like", "long"}, "m": {"metadata", "map"}, "s": {"shards", "stats", "slice"},
          "n": {"dry-run"}}


def test_one_name_for_one_thing(zarrc, commands):
    """An option has one letter, one kind of value and one purpose, whatever command takes it."""
    forms, letters, purposes = {}, {}, {}
    for command in [*commands, "options"]:
        for letter, name, value, text in find_options(zarrc, command):
            forms.setdefault(name, set()).add((letter, bool(value)))
            letters.setdefault(letter, set()).add(name)
            purposes.setdefault(name, {})[command] = text
    assert len(forms) > 60
    # ls and rm have the letters of the usual ls and rm
    assert {name: form for name, form in forms.items() if len(form) > 1} == {"recursive": {("R", False), ("r", False)}}
    assert {letter: names for letter, names in letters.items() if letter and len(names) > 1} == {
        letter: names for letter, names in SHARED.items() if len(names) > 1}
    assert letters["f"] == {"force"} and letters["F"] == {"format"}
    for name, begin in THINGS.items():
        for other, texts in purposes.items():
            for command, text in texts.items():
                if re.match(rf"(\w+(, \w+)*: )?({begin})", text) and name != "keep-fill":
                    assert other == name, (command, other, text)
        assert any(re.search(begin, text) for text in purposes[name].values()), name
    for name in ("format", "zarr-format", "byte-order", "dtype", "shape", "show", "keep-fill", "recursive"):
        assert all(re.search(THINGS[name], text) for text in purposes[name].values()), (name, purposes[name])


def test_version(zarrc):
    assert zarrc("--version").out == zarrc("version").out
    version = zarrc("version", "--json").json
    assert version["library"] == version["program"]
    assert version["zarr_formats"] == [2, 3]
    assert any("zstd" in codec["detail"] for codec in version["codecs"])


def test_list(zarrc):
    everything = zarrc("list", "--json").json
    assert {"bytes", "zstd", "gzip", "blosc", "crc32c", "transpose", "sharding_indexed"} <= {
        row["name"] for row in everything["codecs"]}
    assert {"bool", "int8", "float64", "complex128"} <= {r["name"] for r in everything["dtypes"]}
    only = zarrc("list", "--json", "stores").json
    assert list(only) == ["stores"] and only["stores"] == everything["stores"]
    assert "did you mean codecs" in zarrc("list", "codec", code=2).err
    assert "zstd" in zarrc("list", "codecs").text


def test_codec_names_that_are_uris(zarrc, tmp_path):
    uri = "https://codec.zarrs.dev/bytes_to_bytes/fletcher32"
    for at, codec in enumerate([uri, "numcodecs.fletcher32", f"{uri}:", f"{{\"name\": \"{uri}\"}}"]):
        zarrc("create", "--shape=4", "--dtype=int16", f"--codec={codec}", tmp_path / f"{at}.zarr")
    named = [zarrc("info", "--json", tmp_path / f"{at}.zarr").json["codecs"] for at in range(4)]
    assert all(codecs == named[0] for codecs in named) and "fletcher32" in str(named[0])
    failed = zarrc("create", "--shape=4", "--dtype=int16", "-C", f"{uri}:no=1", tmp_path / "no.zarr", code=None)
    assert failed.code and "fletcher32" in failed.err and '"https"' not in failed.err
    failed = zarrc("create", "--shape=4", "--dtype=int16", "-C", "https://x.y/z", tmp_path / "no.zarr", code=None)
    assert failed.code and "https://x.y/z" in failed.err


def test_errors_as_json(zarrc, tmp_path):
    error = zarrc("info", "--json", tmp_path / "no.zarr", code=3).error
    assert error["exit"] == 3 and error["code"] == "not found"
    assert "no.zarr" in error["what"]
    assert zarrc("info", "--json", "--wrong", code=2).error["code"] == "usage"
    assert json.loads(zarrc("nonsense", "--json", code=2).err)["error"]["exit"] == 2


def test_colours(zarrc):
    assert "\033[" not in zarrc("nonsense", code=2).err
    always = zarrc("info", "--color=always", "/nonexistent", code=3)
    assert "\033[1;31mzarrc:\033[0m" in always.err


def test_control_characters_stay_off_the_terminal(zarrc, tmp_path):
    err = zarrc("info", tmp_path / "a\x1b[31m\nb", code=3).err
    assert "\x1b" not in err and "\\x1b" in err


def test_environment_is_checked(zarrc):
    assert "ZARRC_MAX_THREADS" in zarrc("version", env={"ZARRC_MAX_THREADS": "many"}, code=2).err


@pytest.mark.parametrize("command", [
    ["info"], ["info", "--metadata"], ["info", "--json"], ["ls"], ["ls", "-lR"], ["tree"], ["attrs"], ["attrs", "--json"],
    ["verify"], ["rm", "-rn"], ["clean", "-n"], ["consolidate", "--check"], ["explain"], ["info", "--stats"],
    ["plot", "--term"], ["plot", "--term", "--title=\x1b[31m"], ["migrate", "-n"], ["attrs", "get", "--text", None, "k\x1b"],
    ["diff", "y.zarr"]], ids=str)
def test_no_control_characters(zarrc, tmp_path, command):
    """Names and attributes of a store cannot send control characters to the terminal: C0, DEL, C1."""
    bad = "\x1b[31m\x7f\u009b1m"
    array = {"zarr_format": 3, "node_type": "array", "shape": [2], "data_type": "int8", "fill_value": 0,
             "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}}, "codecs": ["bytes"],
             "chunk_key_encoding": {"name": "default"}, "dimension_names": [bad], "attributes": {bad: bad, "k\x1b": bad}}
    group = {"zarr_format": 3, "node_type": "group", "attributes": {bad: [bad], "k\x1b": bad}}
    other = {**group, "attributes": {bad: 7}}
    for path, document in (("x.zarr", group), (f"x.zarr/a{bad}", array), ("y.zarr", other),
                           (f"y.zarr/a{bad}", {**array, "shape": [3], "dimension_names": [bad + "x"]})):
        (tmp_path / path).mkdir()
        (tmp_path / path / "zarr.json").write_text(json.dumps(document, ensure_ascii=False))
    for path in ("x.zarr", f"x.zarr/a{bad}"):
        words = [path if word is None else word for word in command] + [path] * (None not in command)
        for text in on_terminal(words, tmp_path), on_terminal([*words, "--none" + bad], tmp_path):
            assert text and not [c for c in text if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160)], text


def on_terminal(words, cwd):
    """What a terminal gets from zarrc, on standard output and standard error."""
    main, side = pseudo_terminal()
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "xterm"}
    process = subprocess.Popen([PROGRAM, *words], cwd=cwd, stdin=subprocess.DEVNULL, stdout=side, stderr=side, env=environment)
    os.close(side)
    shown = b""
    while True:
        try:
            block = os.read(main, 65536)
        except OSError:
            break
        if not block:
            break
        shown += block
    process.wait(60)
    os.close(main)
    return shown.decode().replace("\r\n", "\n").replace("\r\x1b[K", "")


def test_file_size_limit(zarrc, tmp_path):
    """Without SIGXFSZ ignored, the program would end without a word. The error names the file."""
    import resource

    array = tmp_path / "a.zarr"
    zarrc("create", array, "--shape=64,64", "-t", "float64")
    for words, name in ((["create", tmp_path / "x.zarr", "--shape=4", "-t", "int8"], "x.zarr"), (["export", array, tmp_path / "x.npy"], "x.npy"),
                        (["plot", array, "-o", tmp_path / "x.png"], "x.png")):
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)), check=False)
        assert done.returncode == 3 and "File too large" in done.stderr and name in done.stderr, done.stderr


@pytest.mark.parametrize("command", [["info"], ["attrs"], ["diff", "y.zarr"], ["ls"], ["ls", "-lR"], ["tree"]], ids=str)
def test_names_cannot_add_lines(zarrc, tmp_path, command):
    """A name with a line end must not look like a line of its own."""
    bad = "x\nFORGED"
    array = {"zarr_format": 3, "node_type": "array", "shape": [2], "data_type": "int8", "fill_value": 0,
             "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}}, "codecs": ["bytes"],
             "chunk_key_encoding": {"name": "default"}, "dimension_names": [bad], "attributes": {bad: 1}}
    group = {"zarr_format": 3, "node_type": "group", "attributes": {bad: 1}}
    for path, document in (("x.zarr", group), (f"x.zarr/{bad}", array), ("y.zarr", {**group, "attributes": {bad: 2}}),
                           (f"y.zarr/{bad}", {**array, "attributes": {bad: 2}, "dimension_names": [bad + "x"]})):
        (tmp_path / path).mkdir()
        (tmp_path / path / "zarr.json").write_text(json.dumps(document))
    for path in ("x.zarr", f"x.zarr/{bad}"):
        out = zarrc(*command, path, code=None, cwd=tmp_path).text
        assert out and not [line for line in out.splitlines() if line.startswith("FORGED")], out


def test_ignored_signals_stay_ignored(tmp_path):
    """As in nohup, and for SIGINT in the background of a script."""
    import signal
    read, write = os.pipe()
    process = subprocess.Popen([PROGRAM, "attrs", "merge", "a", "-"], cwd=tmp_path, stdin=read, stderr=subprocess.PIPE,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    os.close(read)
    os.close(write)
    process.communicate(timeout=60)
    assert process.returncode == 3  # there is no such node
    subprocess.run([PROGRAM, "create", "-g", "g"], cwd=tmp_path, check=True)
    read, write = os.pipe()
    process = subprocess.Popen([PROGRAM, "attrs", "merge", "g", "-"], cwd=tmp_path, stdin=read, stderr=subprocess.PIPE,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    os.close(read)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    os.write(write, b'{"a": 1}')
    os.close(write)
    process.communicate(timeout=60)
    assert process.returncode == 0 and json.loads((tmp_path / "g/zarr.json").read_text())["attributes"] == {"a": 1}


def test_texts_are_taken_as_they_are_or_refused(zarrc, tmp_path):
    zarrc("create", "-g", tmp_path / "g", "--attributes={\"a\": 1}")
    before = (tmp_path / "g/zarr.json").read_bytes()
    assert "not UTF-8" in zarrc("attrs", "set", "--text", tmp_path / "g", "name", b"caf\xe9".decode("utf-8", "surrogateescape"),
                                code=2).err
    (tmp_path / "with_nul").write_bytes(b'{"b": 2}\0{"c": 3}')
    assert "UTF-8" in zarrc("create", tmp_path / "g/a", "--shape=2", "-t", "i1", "--dims=" + b"\xe9".decode("utf-8", "surrogateescape"),
                            code=2).err
    assert "NUL" in zarrc("attrs", "merge", tmp_path / "g", f"@{tmp_path}/with_nul", code=4).err
    assert (tmp_path / "g/zarr.json").read_bytes() == before
    zarrc("attrs", "set", tmp_path / "g", "name", r'"a\u0000b"')
    assert zarrc("attrs", "get", "--text", tmp_path / "g", "name").out == b"a\0b\n"


@pytest.mark.parametrize("word,command", [
    ("rechunk", "reencode"), ("convert", "reencode"), ("validate", "verify"), ("check", "verify"), ("delete", "rm"),
    ("rename", "mv"), ("du", "info --stats"), ("size", "info --stats"), ("dump", "info"), ("show", "info"),
    ("mkdir", "create --group"), ("verifz", "verify")])
def test_commands_of_other_programs(zarrc, word, command):
    assert f'did you mean "{command}"?' in zarrc(word, "x.zarr", code=2).err


@pytest.mark.parametrize("options,near", [
    (["--dtype=flaot32"], "float32"), (["--dtype=strin"], "string"),
    (["--dtype=int8", "--codec=zst"], "zstd"), (["--dtype=int8", "--codec=zstandard:level=3"], "zstd"),
    (["--dtype=int8", "--codec=deflate"], "numcodecs.zlib"), (["--dtype=int8", "--codec=deflate", "--zarr-format=2"], "zlib"),
    (["--dtype=int8", '--codec={"name": "blsoc"}'], "blosc"), (["--dtype=int8", "--key-encoding=defaulx"], "default")], ids=str)
def test_unknown_names_get_a_suggestion(zarrc, tmp_path, options, near):
    error = zarrc("create", "--json", tmp_path / "x.zarr", "--shape=4", *options, code=6).error
    assert error["next"].startswith(f'Did you mean "{near}"?'), error


def test_unknown_names_without_a_suggestion(zarrc, tmp_path):
    """Neither a word that resembles nothing nor a name in a store."""
    assert "zarrc list" in zarrc("create", "--json", tmp_path / "x.zarr", "--shape=4", "--dtype=frobnicate", code=6).error["next"]
    zarrc("create", tmp_path / "x.zarr", "--shape=4", "--dtype=int8")
    document = tmp_path / "x.zarr/zarr.json"
    document.write_text(document.read_text().replace('"zstd"', '"zst"'))
    assert "Did you mean" not in zarrc("info", tmp_path / "x.zarr", code=6).err


def test_unknown_command(zarrc):
    """A word that resembles nothing gets all commands."""
    error = zarrc("frobnicate", code=2).err
    assert all(f" {name}" in error for name in ("info", "reencode", "verify", "plot", "completion"))


def test_direction_on_terminal(zarrc, tmp_path):
    """Characters that turn text around, and line separators, are escaped on a terminal, and kept elsewhere."""
    name = "a\u202egnp.\u2066b\u2028c\u2029d\u200fe\u061cf"
    zarrc("create", "--group", tmp_path / "x.zarr")
    zarrc("create", "--group", tmp_path / "x.zarr" / name)
    assert name in zarrc("ls", tmp_path / "x.zarr").text
    for arguments in (["ls", tmp_path / "x.zarr"], ["info", tmp_path / "x.zarr" / name / "z"]):
        shown = on_terminal(arguments, tmp_path)
        assert "\\u202egnp.\\u2066b\\u2028c\\u2029d\\u200fe\\u061cf" in shown and not set("\u202e\u2066\u2028\u2029\u200f\u061c") & set(shown)


def test_warnings_come_once(zarrc, tmp_path):
    """A command that opens a node more than once warns once."""
    zarrc("create", tmp_path / "a.zarr", "--shape=4", "--dtype=int32")
    zarrc("create", tmp_path / "b.zarr", "--shape=4", "--dtype=int32", "--zarr-format=2")
    (tmp_path / "a.zarr/.zarray").write_bytes((tmp_path / "b.zarr/.zarray").read_bytes())
    for command in ("info", "verify", "cat"):
        assert zarrc(command, tmp_path / "a.zarr").err.count("has v2 and v3 metadata") == 1
