"""Shared by the lint scripts: the files to check, and C text without comments."""
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FUZZ_FILES, FUZZ_BYTES = 1000, 8192  # most of tests/fuzz/corpus: files in all, bytes of one

_TOKEN = re.compile(
    r"""/\*.*?\*/ | //(?:\\\n|[^\n])* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'""",
    re.S | re.X)


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


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def report(tool, problems):
    """Prints the problems and the verdict; the exit code."""
    for problem in problems:
        print(problem)
    print(f"{tool}: {len(problems)} problem{'s' * (len(problems) != 1)}")
    return 1 if problems else 0
