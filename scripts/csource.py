"""Shared by the lint scripts: the files to check, and C text without comments."""
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST_FILES = 2240  # of the tree

_TOKEN = re.compile(
    r"""/\*.*?\*/ | //(?:\\\n|[^\n])* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'""",
    re.S | re.X)

_HEAD = re.compile(r"(\w+)\s*\(([^;{}]*)\)\s*(?:[A-Z_]+\([^()]*\)\s*)*(?=[;{])")
_NOT_FUNCTIONS = {"if", "for", "while", "switch", "return", "sizeof", "typedef", "_Static_assert",
                  "_Alignas", "__attribute__", "defined"}


def files(*folders, suffixes=(".c", ".h")):
    """Files in folders that git tracks or would track, sorted, relative to ROOT. No suffixes: all."""
    present = [f for f in folders if (ROOT / f).exists()]
    if not present:
        return []
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", *present],
                         cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = sorted(set(out.splitlines()))
    return [Path(n) for n in names
            if (suffixes is None or Path(n).suffix in suffixes) and (ROOT / n).is_file()]


def bare(text, keep_strings=False):
    """The text with comments (and strings) blanked; line breaks stay where they were."""
    def blank(match):
        token = match.group(0)
        if keep_strings and token[0] in "\"'":
            return token
        edge = token[0] if token[0] in "\"'" else " "
        return edge + re.sub(r"[^\n]", " ", token[1:-1]) + edge
    return _TOKEN.sub(blank, text)


def without_directives(text):
    """Bare text with its directives blanked."""
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group()),
                  text, flags=re.M)


def _count_parameters(text):
    depth, n = 0, 1
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        n += c == "," and depth == 0
    return 0 if text.strip() in ("", "void") else n


def _body_end(text, opening):
    depth = 0
    for match in re.finditer(r"[{}]", text[opening:]):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return opening + match.start()
    return len(text) - 1


def functions(text):
    """(name, position, parameter count, line count or 0) of each item at file level."""
    position = 0
    while True:
        brace = text.find("{", position)
        stop = len(text) if brace < 0 else brace + 1
        for match in _HEAD.finditer(text, position, stop):
            if match.group(1) in _NOT_FUNCTIONS or match.group(1).isupper():
                continue
            body = text[match.end()] == "{" if match.end() < len(text) else False
            end = _body_end(text, match.end()) if body else match.end()
            n_lines = text.count("\n", match.end(), end) + 1 if body else 0
            yield match.group(1), match.start(1), _count_parameters(match.group(2)), n_lines
        if brace < 0:
            return
        # `extern "C" {` and the like hold functions; every other brace is skipped whole.
        if re.search(r'extern\s+"[^"]*"\s*$', text[:brace]):
            position = brace + 1
        else:
            position = _body_end(text, brace) + 1


def line_number(text, position):
    return text.count("\n", 0, position) + 1


def report(tool, problems):
    """Prints the problems and the verdict; the exit code."""
    for problem in problems:
        print(problem)
    print(f"{tool}: {len(problems)} problem{'s' * (len(problems) != 1)}")
    return 1 if problems else 0
