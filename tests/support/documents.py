"""The blocks of code in the documents. Before one that nothing can run stands `<!-- not run: REASON -->`."""
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ["docs", "examples", "bench", "cli", "man", "plugins", "python", "scripts", "src", "tests", "include", "cmake"]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).glob("**/*.md"))])


@dataclass(frozen=True)
class Block:
    page: str  # from the root
    line: int
    language: str
    code: str
    reason: str | None  # why nothing runs it


def read_blocks(page, language=None):
    """The blocks of a page, or those of one language that run."""
    text = (ROOT / page).read_text()
    found = [Block(str(page), text.count("\n", 0, block.start(2)) + 1, block[2], block[3], block[1])
             for block in re.finditer(r"^(?:<!-- not run: (.+) -->\n)?```(.*)\n((?:.*\n)*?)```$", text, re.M)]
    return [block for block in found if language is None or block.language == language and not block.reason]
