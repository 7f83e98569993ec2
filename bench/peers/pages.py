"""pages - what documents say of the samples: the table of README.md, docs/benchmarks.md, and its pictures. Nothing in
them is written by hand, except the text of this file."""
import cases
import samples

BEGIN, END = "<!-- bench/peers: written by scripts/gen-benchmarks -->", "<!-- bench/peers: end -->"
NEWER = "zarrc-newer"  # zarrc with a zstd and a libdeflate as new as its peers'
NOT_PEERS = ("floor", "zarrc", "zarrc-4k", NEWER)
SAME = "the same as zarrc"  # why that build is absent where it has no other codec
OLD_CODECS = ("netcdf", "gdal")  # peers with Debian's
IN_PLACE = ("zarrs-mimalloc", "zarrs-system", "zarrs-tools", "zarr-zarrs")  # peers that write into the file itself, without a lock
SHORT = {"zarrs-mimalloc": "zarrs with mimalloc", "zarrs-system": "zarrs", "zarrs-tools": "zarrs_tools", "zarr-zarrs": "zarr-python + zarrs",
         "zarr-fused": "zarr-python, fused", "netcdf": "netCDF", "gdal": "GDAL"}
GROUPS = (("Cubes of zarr_benchmarks", ("read/raw", "read/zstd", "read/shard", "read-", "chunks", "inner-chunks", "round/", "one-core/")),
          ("Codecs", ("read/", "write/")), ("Small chunks", ("scale/",)), ("Parts, texts, handles, other storage", ("",)))
FRONT_CASES = ("read/raw", "read/zstd", "read/shard", "read/inner-zstd", "read/v2-raw", "write/zstd", "write/shard", "write/files")
FRONT_PEERS = {"zarrc": "zarrc", "zarrs-mimalloc": "zarrs", "tensorstore": "TensorStore", "zarr-python": "zarr-python", "zarr-fused": "zarr-python, fused",
               "netcdf": "netCDF-C"}
AT_FLOOR = 1.05  # of it, at most: a better loop would gain little
SMALL_SETS = ("files", "inner-")


def ms(seconds):
    """Milliseconds, to three digits."""
    if seconds is None:
        return "no clean round"
    return f"{seconds * 1e3:.3g}" if seconds < 1 else f"{seconds * 1e3:.0f}"


def with_range(found):
    return f"{found[0]:.2f} ({found[1]:.2f}-{found[2]:.2f})" if found else ""


def by_name():
    return {case.name: case for case in cases.cases()}


def find_group(name):
    if any(name.split("/")[-1].startswith(part) for part in SMALL_SETS):
        return GROUPS[2][0]
    return next(title for title, starts in GROUPS if any(name.startswith(start) for start in starts))


class Row:
    """A case of a run, with all that tables say of it."""

    def __init__(self, run, record, case):
        self.run, self.record, self.case, self.samples = run, record, case, record["samples"]
        self.ours = samples.median(self.samples.get("zarrc", []))
        self.to_floor = self.ratio("zarrc", "floor")
        self.ratios = {name: found for name in self.samples if name not in NOT_PEERS if (found := self.ratio(name, "zarrc"))}
        self.best = min(self.ratios, key=lambda name: self.ratios[name][0], default=None)
        self.equal = self.on_equal_terms()
        self.is_equal = NEWER in self.samples or record["absent"].get(NEWER) == SAME  # else the codecs differ

    def on_equal_terms(self):
        """The ratios of peers that replace files in one step, as zarrc does, to that build of it whose codecs are as new as theirs."""
        peers = [name for name in self.ratios if not (self.case.writes and name in IN_PLACE)]
        return {name: name not in OLD_CODECS and self.ratio(name, NEWER) or self.ratios[name] for name in peers}

    def ratio(self, over, under):
        if over not in self.samples or under not in self.samples:
            return None
        return samples.ratio(self.samples[over], self.samples[under])

    def median(self, name, what="seconds"):
        return samples.median(self.samples.get(name, []), what)

    def short(self):
        """What falls short of its target."""
        found = []
        if self.case.floor and self.to_floor and self.to_floor[0] > self.case.floor:
            found.append(f"{self.to_floor[0]:.2f} of the floor, at most {self.case.floor:g} wanted")
        best = min(self.equal, key=lambda name: self.equal[name][0], default=None)
        if best and self.equal[best][0] < self.case.best:
            at_floor = self.to_floor and self.to_floor[0] <= AT_FLOOR
            found.append(f"{self.equal[best][0]:.2f} of {SHORT.get(best, best)}{' on equal terms' * (self.case.writes and self.is_equal)}, at least {self.case.best:g} wanted"
                         + (f"; zarrc takes {self.to_floor[0]:.2f} of the floor, so the codec or memory binds" if at_floor else ""))
        return found


def rows(runs):
    """Of all cases that the table of cases still has, in its order; larger cubes after smaller ones."""
    known = by_name()
    order = {name: n for n, name in enumerate(known)}
    found = [Row(run, record, known[record["name"]]) for run, of in runs.items() for record in of["cases"] if record["name"] in known]
    return sorted(found, key=lambda row: (row.record["size"], order[row.case.name], row.run))


def title(row):
    """The case, with the edge of its array if that is a cube."""
    shape = cases.sets(row.record["size"])[row.case.set].shape
    return row.case.title + (f", {shape[0]}^3" if len(shape) == 3 and len(set(shape)) == 1 else "")


def short_table(runs):
    """For README.md: a few cases, each in a line with the milliseconds of each library."""
    found = {row.case.name: row for row in rows(runs) if row.record["size"] <= cases.SMALL}
    lines = [f"| case, milliseconds | {' | '.join(FRONT_PEERS.values())} |", "|---|" + "---:|" * len(FRONT_PEERS)]
    for row in (found[name] for name in FRONT_CASES if name in found):
        cells = [ms(row.median(name)) if name in row.samples else "" for name in FRONT_PEERS]
        lines.append(f"| {title(row)} | {' | '.join(cells)} |")
    facts = next(iter(runs.values()))["facts"]
    return "\n".join([*lines, "", f"Machine: {facts['cores']} cores of {facts['cpu']}, Linux {facts['kernel']}, {facts['file_system']}."])


def replace_table(text, table):
    """README.md with the table between its two marks."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + "\n" + table + "\n" + END + rest.split(END)[1]


# ---- docs/benchmarks.md ----

HEAD = """# How fast zarrc is

`scripts/gen-benchmarks` writes this page from the samples in `bench/results/`. zarrc is its C library here; another
[table](../bench/results/python-2-cores.md) is of the Python package.
[bench/peers](../bench/peers/README.md) describes the method and defines each word.

## How to read the tables

- A time is the median of the clean rounds, in milliseconds. Times differ between machines; compare the ratios.
- A ratio is the median of the ratios within each round, with its 90 % interval.
- *zarrc / floor* compares zarrc with bare loops over pread, the codec and a copy of rows: lower is better. It can be below 1,
  because the floor is a plain program and not a limit.
- *peer / zarrc* compares a peer with zarrc: higher is better.
- A cell is empty if the peer cannot do the case, or if no round was clean.

## What differs besides the libraries

- **zstd.** zarrs contains zstd 1.5.7 and TensorStore its own. zarrc uses Debian's 1.5.4, which encodes more slowly. zarrc-newer is
  zarrc built with `ZARR_NEWER_CODECS`: zstd 1.5.7 and libdeflate 1.26. It takes part where arrays are written.
- **Atomic writes.** zarrc, tensorstore and zarr-python replace each file in one step. zarrs and the floor write in place.
- **Targets of writes** are "on equal terms": with codecs as new, and beside peers that replace files in one step.

## The runs
"""


def peers_table(runs):
    yield "\n## What was compared\n\n| peer | version | flags |\n|---|---|---|"
    found = {}
    for of in runs.values():
        found.update(of["facts"]["peers"])
    for name, entry in found.items():
        if "absent" in entry:
            yield f"| {name} | not installed: {entry['absent']} | |"
        else:
            yield f"| {name} | {entry['version']} | {entry['flags']} |"


def machine_lines(runs):
    for name, of in runs.items():
        facts = of["facts"]
        yield (f"\nRun [{name}](../bench/results/{name}.json): {facts['cores']} cores of {facts['cpu']}, Linux {facts['kernel']}, huge pages "
               f"`{facts['huge_pages']}`, {facts['file_system']}; {facts['durability']}; outputs {facts['outputs']}. "
               f"Commits of the library: {', '.join(sorted({record['commit'] for record in of['cases']}))}.")


def case_tables(all_rows):
    for group, _ in GROUPS:
        of = [row for row in all_rows if find_group(row.case.name) == group]
        if not of:
            continue
        names = [name for name in dict.fromkeys(name for row in of for name in row.samples) if name == NEWER or name not in NOT_PEERS]
        yield f"\n## {group}\n"
        yield f"| case | floor ms | zarrc ms | zarrc / floor | {' | '.join(f'{name} / zarrc' for name in names)} | dropped |"
        yield "|---|---:|---:|---|" + "---|" * len(names) + "---:|"
        for row in of:
            cells = [with_range(row.ratio(name, "zarrc")) for name in names]
            yield (f"| {title(row)} | {ms(row.median('floor')) if 'floor' in row.samples else ''} | {ms(row.ours)} | {with_range(row.to_floor)} | {' | '.join(cells)} | "
                   f"{samples.n_dirty(row.samples)} |")


def short_list(all_rows):
    yield "\n## Short of a target\n\nWhat binds these cases, by counts and profiles, and what was tried: [shortfalls-2-cores](../bench/results/shortfalls-2-cores.md).\n"
    for row in all_rows:
        for text in row.short():
            yield f"* {title(row)}: {text} (run {row.run})"


def pages_table(all_rows):
    """At equal pages: zarrc without huge ones, beside zarrs with the system's allocator."""
    of = [row for row in all_rows if row.ratio("zarrs-system", "zarrc-4k")]
    if not of:
        return
    yield "\n## At equal pages\n\nzarrc with 4 KiB pages (zarrc-4k), and what peers that have no others take in comparison.\n"
    names = ("zarrs-system", "tensorstore", "zarr-zarrs", "zarr-fused")
    yield f"| case | zarrc-4k ms | {' | '.join(f'{name} / zarrc-4k' for name in names)} |\n|---|---:|" + "---|" * len(names)
    for row in of:
        yield f"| {row.case.title} | {ms(row.median('zarrc-4k'))} | {' | '.join(with_range(row.ratio(name, 'zarrc-4k')) for name in names)} |"


def memory_table(all_rows):
    of = [row for row in all_rows if row.case.is_fresh and row.median("zarrc", "peak_kb") and not row.case.is_cold]
    if not of:
        return
    names = [name for name in dict.fromkeys(name for row in of for name in row.samples) if any(row.median(name, "peak_kb") for row in of)]
    yield "\n## Memory\n\nPeak of resident memory during a read, in MiB: program, libraries and output (first column) included.\n"
    yield f"| case | output | {' | '.join(names)} |\n|---|---:|" + "---:|" * len(names)
    for row in of:
        peaks = [f"{peak / 1024:.0f}" if (peak := row.median(name, "peak_kb")) else "" for name in names]
        yield f"| {row.case.title} | {row.record['bytes'] / 2**20:.0f} | {' | '.join(peaks)} |"


def scale_lines(all_rows):
    """Microseconds of a chunk beyond its bytes, by the sets that differ in nothing else."""
    of = [row for row in all_rows if row.case.name.startswith("scale/")]
    if len(of) < 3:
        return
    yield "\n## What a chunk costs\n"
    yield "The reads of chunks in shards, from 1 KiB to 4 MiB, move the same bytes; the line through them gives the time of one chunk more.\n"
    yield "| peer | us per chunk | ms without |\n|---|---:|---:|"
    sets = cases.sets(of[0].record["size"])
    for name in dict.fromkeys(name for row in of for name in row.samples):
        points = []
        for row in of:
            it, took = sets[row.case.set], row.median(name)
            if took:
                points.append((it.nbytes / (it.inner[0] * it.inner[1] * it.item), took))
        if len(points) >= 3:
            rest, each = samples.line(points)
            yield f"| {name} | {each * 1e6:.2f} | {rest * 1e3:.1f} |"


def cores_lines(all_rows):
    pairs = []
    named = {(row.case.name, row.record["size"]): row for row in all_rows}
    for row in all_rows:
        if row.case.name.startswith("one-core/"):
            two = named.get(("read-warm/" + row.case.set, row.record["size"]))
            if two and two.ours and row.ours:
                pairs.append((row, two))
    if pairs:
        yield "\n## One core and two\n\nHow many times faster a read into used memory is on all cores than on one.\n"
        names = [name for name in pairs[0][0].samples if pairs[0][1].median(name)]
        yield f"| set | {' | '.join(names)} |\n|---|" + "---:|" * len(names)
        for one, two in pairs:
            cells = [f"{a / b:.2f}" if (a := one.median(name)) and (b := two.median(name)) else "" for name in names]
            yield f"| {one.case.set} | {' | '.join(cells)} |"


def page(runs):
    all_rows = rows(runs)
    shown = (f"\n![{name}](images/{name})" for name in names_of_pictures(all_rows))
    parts = [HEAD.rstrip("\n"), *machine_lines(runs), *shown, *peers_table(runs), *case_tables(all_rows), *pages_table(all_rows),
             *memory_table(all_rows), *cores_lines(all_rows), *scale_lines(all_rows), *short_list(all_rows)]
    return "\n".join(parts) + "\n"


# ---- pictures ----

BAR, GAP, LEFT, WIDTH, MOST = 13, 12, 300, 720, 6  # pixels; ratios from MOST on are cut
SHOWN = {"zarrs-mimalloc": "#4878a8", "zarrs-tools": "#7ba3c9", "tensorstore": "#d08a3c", "zarr-fused": "#7c9c5e", "zarr-python": "#a0b890"}


def names_of_pictures(all_rows):
    return [f"benchmarks-{n}.svg" for n in range(1, 1 + len(chapters(all_rows)))]


def chapters(all_rows):
    """(title, rows) of each picture."""
    found = []
    for group, _ in GROUPS:
        of = [row for row in all_rows if find_group(row.case.name) == group and any(name in row.ratios for name in SHOWN)]
        if of:
            found.append((group, of))
    return found


def picture(heading, of):
    """Bars: how many times as long as zarrc each peer takes."""
    y, parts = 58, []
    scale = (WIDTH - LEFT - 40) / MOST
    for row in of:
        bars = [(name, row.ratios[name][0]) for name in SHOWN if name in row.ratios]
        parts.append(f'<text x="{LEFT - 8}" y="{y + BAR * len(bars) / 2 + 4:.0f}" text-anchor="end">{row.case.title}</text>')
        for name, value in bars:
            parts.append(f'<rect x="{LEFT}" y="{y}" width="{min(value, MOST) * scale:.0f}" height="{BAR - 2}" fill="{SHOWN[name]}"/>')
            parts.append(f'<text x="{LEFT + min(value, MOST) * scale + 4:.0f}" y="{y + BAR - 4}" font-size="10">{value:.1f}</text>')
            y += BAR
        y += GAP
    one = LEFT + scale
    legend, x = [], 12
    for name, colour in SHOWN.items():
        legend.append(f'<rect x="{x}" y="34" width="10" height="10" fill="{colour}"/><text x="{x + 14}" y="43">{name}</text>')
        x += 28 + 7 * len(name)
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" font-family="sans-serif" font-size="11">',
                      '<rect width="100%" height="100%" fill="white"/>',
                      f'<text x="12" y="20" font-size="14">{heading}: time of a peer / time of zarrc (line: equal)</text>', *legend, *parts,
                      f'<line x1="{one:.0f}" y1="52" x2="{one:.0f}" y2="{y - GAP}" stroke="#333"/>', "</svg>"]) + "\n"


def pictures(runs):
    all_rows = rows(runs)
    return {f"docs/images/{name}": picture(heading, of) for name, (heading, of) in zip(names_of_pictures(all_rows), chapters(all_rows))}
