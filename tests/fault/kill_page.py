"""kill_page - the page of kill_points.py: docs/status/reliability.md."""

HEAD = """<!-- tests/fault/kill_points.py --page writes this file. -->

# Kill points

This page shows what remains in a local store if a process is killed, or if two processes write at
the same time. [tests/fault](../../tests/fault/kill_points.py) contains the method and the
operations. `make test-long` repeats the whole run.

Commit {commit}, {date}: **{trials} trials, {violations} violations**.

## What is checked

The test kills each command, and each writing call of the Python package, before every one of its
system calls on a store. After each kill:

- Each stored object has its old or its new value.
- A reader that opens a node gets the old node, the new node, or NOT_FOUND. This holds with and
  without consolidated metadata. An array that `import` or `reencode` has not finished opens with a
  warning.
- `verify` finds nothing, or names the interrupted command. `clean` names what remains.
- Repeating the command completes the work. After `clean`, the store has the same files as after a
  run without a kill.

Calls marked `enable()` run in zarr-python below `zarrc.enable()`. zarr-python orders the steps of
`append` and `resize`, and an interruption may leave [fill values](../python.md).

The test also runs pairs of commands. It stops the first before every one of its system calls, runs
the second, and then lets the first continue. After each pair:

- The nodes are those of one of the two orders. If one command fails, a part of its work may remain.
- Where two writes overlap, each object has the elements of one of the two.
"""


def table(head, rows):
    lines = [head, ("---", *["---:"] * (len(head) - 1)), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in lines) + "\n"


def show_name(name, kind):
    return name if kind == "command" else f"`{name.removeprefix('Python: ')}`"


def text(results, tasks, commit, date):
    found = {name: (trials, len(bad)) for name, trials, bad in results}
    parts = [HEAD.format(commit=commit, date=date, trials=sum(t for t, _ in found.values()),
                         violations=sum(v for _, v in found.values()))]
    for kind, title, head in (("command", "Commands", "command"), ("call", "Calls of the Python package", "call")):
        names = [name for name, (kind_found, _) in tasks.items() if kind_found == kind and name in found]
        rows = [(show_name(name, kind), *found[name]) for name in names]
        parts += [f"## {title}\n", table((head, "kills", "violations"), rows)]
    pairs = {}
    for name, (kind, pair) in tasks.items():
        if kind == "pair" and name in found:
            n, trials, bad = pairs.get(pair[0], (0, 0, 0))
            pairs[pair[0]] = n + 1, trials + found[name][0], bad + found[name][1]
    rows = [(first, *numbers) for first, numbers in pairs.items()]
    return "\n".join([*parts, "## Pairs\n", table(("first command", "second commands", "stops", "violations"), rows)])
