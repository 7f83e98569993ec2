"""cat, import, export, diff, plot and reencode on a small array of every data type that the program
lists, in both formats, and of every codec that gives v2 a data type. If a command refuses a type, the
expected error text is listed here. The tests fail for a new type without a row."""
import csv
import io
import json

import pytest

import cases
from conftest import run
from every_type import CHUNKS, CODECS_V2, SHAPE, TYPES, TYPES_V2, spelled_v2
from zarrc_ctypes import Context

LISTED = run("list", "--json", "dtypes").json["dtypes"]
V2_NAMES = {row["v3"]: row["v2"] for row in LISTED if row["v3"] and row["v2"] and row["v2"] != "|O"}  # CODECS_V2 have these
ROWS = {f"v3-{name}": (cases.document_v3(*TYPES[name][:3], SHAPE, CHUNKS), TYPES[name][3]) for name in TYPES}
ROWS |= {f"v2-{name}": (cases.document_v2(*spelled_v2(name, V2_NAMES[name]), SHAPE, CHUNKS), TYPES[name][3])
         for name in TYPES if name in V2_NAMES}
ROWS |= {f"v2-{name}": (cases.document_v2(dtype, fill, SHAPE, CHUNKS, filters=filters), data)
         for name, (dtype, fill, filters, data) in (CODECS_V2 | TYPES_V2).items()}
# The error of plot for types that are not numbers.
PLOT = {"r": "are not numbers", "null_terminated_bytes": "are not numbers", "fixed_length_utf32": "are not numbers",
        "string": "are not numbers", "variable_length_bytes": "are not numbers", "struct": "Choose a field: --field=NAME",
        "vlen-array": "are not numbers", "json2": "are not numbers", "msgpack2": "are not numbers",
        "categorize": "are not numbers"}
REFUSED = {form: f"the format {form} cannot hold elements of variable length" for form in ("raw", "npy")}


@pytest.fixture(scope="module")
def context():
    with Context(max_threads=1) as made:
        yield made


@pytest.fixture(params=ROWS)
def array(request, context, tmp_path):
    """(name, folder of the array, whether elements have variable length, elements)"""
    document, data = ROWS[request.param]
    made = context.store(str(tmp_path / "a"), create=True).create(document=document)
    texts = isinstance(data, list)
    made.write_vlen(data) if texts else made.write(data)
    return request.param[3:], tmp_path / "a", texts, data


def test_every_type_has_a_row():
    assert {row["v3"] for row in LISTED if row["v3"]} == set(TYPES)
    assert {row["v2"] for row in LISTED if not row["v3"]} == set(TYPES_V2)
    assert set(PLOT) <= {name[3:] for name in ROWS}


def cat(path, form, texts):
    if texts and form in REFUSED:
        assert REFUSED[form] in run("cat", f"--format={form}", path, code=6).err
        return None
    return run("cat", f"--format={form}", path).out


def test_six_commands(array, tmp_path):
    name, path, texts, data = array
    forms = {form: cat(path, form, texts) for form in ("text", "csv", "json", "elements", "raw", "npy")}
    shown = json.loads(forms["json"])
    assert (len(shown), len(shown[0])) == SHAPE
    assert [json.loads(line) for line in forms["elements"].splitlines()] == [v for row in shown for v in row]
    fields = list(csv.reader(io.StringIO(forms["csv"].decode(), newline="")))
    assert (len(fields), {len(row) for row in fields}) == (SHAPE[0], {SHAPE[1]})
    if all(type(v) in (int, float) for row in shown for v in row):
        assert [[json.loads(field) for field in row] for row in fields] == shown
    assert forms["text"].split() == " ".join(sum(fields, [])).encode().split()  # in columns
    assert texts or forms["raw"] == data.tobytes()

    if name in PLOT:
        message = run("plot", "--json", "-o", tmp_path / "p.png", path, code=2 if name == "struct" else 6).err
        assert PLOT[name] in message and str(path) in message
    else:
        run("plot", "-o", tmp_path / "p.png", path)
        assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    run("reencode", path, tmp_path / "b", "--chunks=3,2")
    run("diff", path, tmp_path / "b")

    # The file name gives the format. No file name means the format elements, so it needs the option.
    for end, more in ((".json", []), (".npy", []), (".raw", []), (".elements", ["elements"])):
        file, back = tmp_path / f"e{end}", tmp_path / f"back{end}"
        if texts and end[1:] in REFUSED:
            assert REFUSED[end[1:]] in run("export", path, file, code=6).err
            continue
        run("export", path, file, *(f"--format={m}" for m in more))
        assert file.read_bytes() == forms[end[1:]]
        run("create", f"--like={path}", back)
        assert run("diff", path, back, code=None).code == 1
        run("import", file, f"{back}[...]", *(f"--format={m}" for m in more))
        run("diff", path, back)


def test_files_by_name(tmp_path):
    """import takes the format from the file name as export and cat do."""
    path = tmp_path / "a"
    (tmp_path / "a.json").write_text("[[1, 2], [3, 4]]")
    run("import", "--dtype=int16", tmp_path / "a.json", path)  # --dtype is the type of the elements in the file
    assert run("cat", "--format=json", path).json == [[1, 2], [3, 4]]
    run("export", path, tmp_path / "a.npy")
    run("import", "--dtype=int16", tmp_path / "a.npy", tmp_path / "b")
    run("diff", path, tmp_path / "b")
    for end in ("csv", "txt"):
        run("export", path, tmp_path / f"a.{end}")
        failed = run("import", tmp_path / f"a.{end}", f"{path}[...]", code=2)
        assert f"a.{end}" in failed.err and "--format" in failed.err
    lines = run("import", "--format=lines", tmp_path / "a.txt", f"{path}[...]", code=4)
    assert "a.txt: 1 2 is not a valid int16" in lines.err
    # With the option the file may have any name. Standard input without it is a NumPy file.
    (tmp_path / "a.json").rename(tmp_path / "a.dat")
    run("import", "--format=json", tmp_path / "a.dat", f"{path}[...]")
    run("import", tmp_path / "a.dat", f"{path}[...]", code=4)
    run("import", "-", f"{path}[...]", input=(tmp_path / "a.npy").read_bytes())
    run("diff", path, tmp_path / "b")
