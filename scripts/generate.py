"""Shared by the gen-* scripts: each writes one file of the tree, or compares it (--check)."""
import argparse
import sys

from csource import ROOT


def write_or_check(about, path, text):
    """Writes the text to path, which is relative to ROOT. With --check it writes nothing and the
    program exits with 1 if the file has another text."""
    ask = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--check", action="store_true", help="write nothing; fail if the file is stale")
    check, file = ask.parse_args().check, ROOT / path
    if not check:
        file.write_text(text)
    elif not file.is_file() or file.read_text() != text:
        sys.exit(f"{path}: differs from the output of scripts/{sys.argv[0].rpartition('/')[2]}")
