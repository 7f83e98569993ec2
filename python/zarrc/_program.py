"""The console script `zarrc`: the program of the C library, which the wheel has in the package."""
from __future__ import annotations

import os
import sys
from pathlib import Path


def program() -> Path:
    """Where the program is."""
    return Path(__file__).resolve().parent / "bin" / "zarrc"


def main() -> int:
    """Becomes the program, so that signals, the exit status and pipes are its own."""
    path = program()
    try:
        os.execv(path, [str(path), *sys.argv[1:]])
    except OSError as problem:
        print(f"zarrc: {path}: {problem.strerror}; this installation lacks the program", file=sys.stderr)
        return 127


if __name__ == "__main__":
    sys.exit(main())
