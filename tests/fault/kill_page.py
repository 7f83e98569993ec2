"""kill_page - the page of kill_points.py: docs/status/reliability.md."""

HEAD = """<!-- tests/fault/kill_points.py --page writes this file. -->

# Kill points

Each command of zarrc and each writing call of the Python package is stopped before each of its system calls on a store, and
killed there. Pairs of commands run at once: the first is stopped before each of its calls, the second runs, and the first goes
on. [tests/fault](../../tests/fault/kill_points.py) has the method and the operations.

After each kill:

- Each stored object has its old or its new value.
- A reader that opens a node, by its path or through consolidated metadata, gets the old node, the new node, or NOT_FOUND.
- `verify` finds nothing, or names the interrupted command. `clean` names what remains.
- The repeated command completes the work. Then the files are those of a run without a kill.

After each pair, the stores are as after one of the two orders. Of writes of regions that overlap, each object has the elements
of one of the two.

Commit {commit}, {date}: **{trials} trials, {violations} violations**, {seconds:.0f} s. `make test-long` repeats all of it.
"""


def table(head, rows):
    lines = [head, ("---", *["---:"] * (len(head) - 1)), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in lines) + "\n"


def text(results, tasks, commit, date, seconds):
    found = {name: (trials, len(bad)) for name, trials, bad in results}
    parts = [HEAD.format(commit=commit, date=date, seconds=seconds, trials=sum(t for t, _ in found.values()),
                         violations=sum(v for _, v in found.values()))]
    for kind, title in (("command", "Commands"), ("call", "Calls of the Python package")):
        rows = [(f"`{name.removeprefix('Python: ')}`", *found[name]) for name, (of, _) in tasks.items() if of == kind and name in found]
        parts += [f"## {title}\n", table((title, "kills", "violations"), rows)]
    pairs = {}
    for name, (kind, pair) in tasks.items():
        if kind == "pair" and name in found:
            n, trials, bad = pairs.get(pair[0], (0, 0, 0))
            pairs[pair[0]] = n + 1, trials + found[name][0], bad + found[name][1]
    rows = [(f"`{first}`", *numbers) for first, numbers in pairs.items()]
    return "\n".join([*parts, "## Pairs\n", table(("Stopped command", "second commands", "stops", "violations"), rows)])
