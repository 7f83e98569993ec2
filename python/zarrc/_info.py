"""What `info`, `tree` and the reprs show: text, and HTML for notebooks."""
from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any


def bytes_text(n: int) -> str:
    """Bytes, with a rounded number for people from 1 KiB on."""
    if n < 1024:
        return str(n)
    size, unit = float(n), ""
    for unit in "KMGTPE":
        size /= 1024
        if size < 1024:
            break
    return f"{n} ({size:.1f}{unit})"


def _table(rows: list[tuple[str, Any]]) -> str:
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}} : {value}" for name, value in rows)


@dataclass(frozen=True)
class Info:
    """Rows of names and values."""

    rows: tuple[tuple[str, Any], ...]

    def __repr__(self) -> str:
        return _table(list(self.rows))

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
                       f"<td style='text-align:left'>{html.escape(str(value))}</td></tr>" for name, value in self.rows)
        return f"<table class='zarrc-info'>{rows}</table>"

    def items(self) -> dict[str, Any]:
        return dict(self.rows)


@dataclass(frozen=True)
class Tree:
    """A hierarchy as lines."""

    title: str
    nodes: tuple[tuple[int, str, str], ...]
    """Depth from 1, name, and what is said about it; parents come before their children."""

    def _lines(self) -> list[str]:
        out, ends = [self.title], self._last_ones()
        open_at: list[bool] = []  # whether the level above has more
        for i, (depth, name, text) in enumerate(self.nodes):
            del open_at[depth - 1:]
            lead = "".join("│   " if more else "    " for more in open_at)
            out.append(f"{lead}{'└── ' if ends[i] else '├── '}{name}{text}")
            open_at.append(not ends[i])
        return out

    def _last_ones(self) -> list[bool]:
        """Whether no sibling follows."""
        out = [True] * len(self.nodes)
        seen: list[bool] = []
        for i in range(len(self.nodes) - 1, -1, -1):
            depth = self.nodes[i][0]
            del seen[depth:]
            seen += [False] * (depth - len(seen))
            out[i] = not seen[depth - 1]
            seen[depth - 1] = True
        return out

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    __str__ = __repr__

    def _repr_html_(self) -> str:
        return f"<pre class='zarrc-tree'>{html.escape(repr(self))}</pre>"
