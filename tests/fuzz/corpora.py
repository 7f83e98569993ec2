"""The corpora, FOLDER/<target>.txt: an input a line as Python writes bytes, b'...'. An input with a name
before it, such as a past crash, always stays. Named inputs come first, and each part is sorted."""
import ast
import pathlib
import re

FOLDER = pathlib.Path(__file__).resolve().parent / "corpus"
BYTES = 8192  # most of an input
LINE = re.compile(r"(?:([\w-]+) )?(.*)", re.ASCII)


def parse(line):
    name, text = LINE.fullmatch(line).groups("")
    try:
        data = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        data = None
    if not isinstance(data, bytes) or repr(data) != text:
        raise ValueError(f"{line[:60]}: expected bytes as repr() writes them, after a name of letters, digits, - and _, or none")
    if len(data) > BYTES:
        raise ValueError(f"{len(data)} bytes, {BYTES} are allowed")
    return data, name


def read(target, folder=FOLDER):
    """{bytes: name}. The name is empty for inputs that libFuzzer chose."""
    path = folder / f"{target}.txt"
    found = {}
    for number, line in enumerate(path.read_text().splitlines() if path.exists() else [], 1):
        try:
            data, name = parse(line)
        except ValueError as error:
            raise ValueError(f"{path}:{number}: {error}") from None
        found[data] = name or found.get(data, "")
    return found


def write(target, inputs):
    """Raises ValueError for a name or an input that read() would refuse."""
    order = sorted((not name, name, data) for data, name in inputs.items())
    lines = [f"{name} {data!r}".lstrip() for _, name, data in order]
    for line in lines:
        parse(line)
    (FOLDER / f"{target}.txt").write_text("".join(f"{line}\n" for line in lines))
