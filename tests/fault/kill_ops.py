"""kill_ops - the operations whose every system call is a kill point, the stores that they change, and the pairs of operations
that run at once."""
import struct
from dataclasses import dataclass

N, UNIT = 1024, 256  # elements of an array, and of what is stored as one object


def ints(first, n):
    return struct.pack(f"<{n}i", *range(first, first + n))


INPUTS = {"old": ints(0, N), "new": ints(100000, N), "new2": ints(600000, N), "add": ints(N, 300), "few": ints(7000, 7),
          "part": ints(200000, 500), "part2": ints(500000, 500), "nine": ints(900000, 9)}


@dataclass
class Operation:
    """name; the arguments of zarrc, or a Python program; the arguments that complete it after a kill (None: the same).

    mixes: arrays that may hold objects of both states. keeps: arrays whose old or new elements are always there. lags: consolidated
    metadata may still describe an array as it was. grows: a name and a larger shape, to look for elements that must not come back.
    """
    name: str
    command: list | str
    repeat: list | str | None = None
    mixes: tuple = ()
    keeps: tuple = ()
    lags: bool = False
    grows: tuple = ()
    uses: str = "zarrc"  # "zarr": zarr-python below zarrc.enable()


def raw(file):
    return [f"{file}.raw", "-t", "int32"]


def region(name, file, where, node, **more):
    return Operation(name, ["import", f"{file}.raw", f"{node}[{where}]", "-t", "int32"], mixes=(node,), **more)


A, SH, E, V2 = "s.zarr/a", "s.zarr/g/sh", "s.zarr/g/e", "v2.zarr/a"
P, PSH = "p.zarr/a", "p.zarr/g/sh"  # without consolidated metadata, which zarr-python does not update
NEW = ["-t", "int32", f"--shape={N}", "-c", "250"]

COMMANDS = [
    region("write", "new", ":", A),
    region("write part", "part", "100:600", A),
    region("write part of shards", "part", "100:600", SH),
    region("write part, v2", "part", "100:600", V2),
    Operation("append", ["append", A, "add.raw"], lags=True, grows=(A, 3000)),
    Operation("append to shards", ["append", SH, "add.raw"], lags=True, grows=(SH, 3000)),
    Operation("append, v2", ["append", V2, "add.raw"], lags=True, grows=(V2, 3000)),
    Operation("grow", ["resize", A, "1300"], lags=True, grows=(A, 3000)),
    Operation("shrink", ["resize", A, "300"], grows=(A, 3000)),
    Operation("shrink shards", ["resize", SH, "300"], grows=(SH, 3000)),
    Operation("shrink, v2", ["resize", V2, "300"], grows=(V2, 3000)),
    Operation("attrs set", ["attrs", "set", A, "k", "2"], lags=True),
    Operation("attrs set of a group", ["attrs", "set", "s.zarr/g", "k", "2"], lags=True),
    Operation("attrs set, v2", ["attrs", "set", V2, "k", "2"], lags=True),
    Operation("attrs merge", ["attrs", "merge", "--replace", A, '{"x":[1,2,3]}'], lags=True),
    Operation("attrs del", ["attrs", "del", A, "k"], lags=True),
    Operation("consolidate", ["consolidate", "p.zarr"]),
    Operation("consolidate, v2", ["consolidate", "p2.zarr"]),
    Operation("cp a store", ["cp", "s.zarr", "t.zarr"], ["cp", "--skip-equal", "s.zarr", "t.zarr"]),
    Operation("cp a group", ["cp", "s.zarr/g", "s.zarr/h"], ["cp", "--skip-equal", "s.zarr/g", "s.zarr/h"]),
    Operation("cp --force", ["cp", "--force", A, E]),
    Operation("mv a group", ["mv", "s.zarr/g", "s.zarr/h"], ["mv", "--skip-equal", "s.zarr/g", "s.zarr/h"]),
    Operation("mv an array", ["mv", A, "s.zarr/g/b"], ["mv", "--skip-equal", A, "s.zarr/g/b"]),
    Operation("mv to another store", ["mv", "s.zarr/g", "t.zarr/g"], ["mv", "--skip-equal", "s.zarr/g", "t.zarr/g"]),
    Operation("mv --force", ["mv", "--force", A, E]),
    Operation("mv a store", ["mv", "s.zarr", "t.zarr"], ["mv", "--skip-equal", "s.zarr", "t.zarr"]),
    Operation("mv, v2", ["mv", V2, "v2.zarr/b"], ["mv", "--skip-equal", V2, "v2.zarr/b"]),
    Operation("rm", ["rm", A], ["rm", "-f", A]),
    Operation("rm -r", ["rm", "-r", "s.zarr/g"], ["rm", "-rf", "s.zarr/g"]),
    Operation("rm -r of a store", ["rm", "-r", "s.zarr"], ["rm", "-rf", "s.zarr"]),
    Operation("rm -r, v2", ["rm", "-r", "v2.zarr"], ["rm", "-rf", "v2.zarr"]),
    Operation("reencode", ["reencode", "-c", "128", "-s", "512", A, "t.zarr/b"],
              ["reencode", "--resume", "-c", "128", "-s", "512", A, "t.zarr/b"]),
    Operation("reencode a store", ["reencode", "-C", "zstd:1", "s.zarr", "t.zarr"], ["reencode", "--resume", "-C", "zstd:1", "s.zarr", "t.zarr"]),
    Operation("reencode into a group", ["reencode", "-c", "250", A, "s.zarr/h/x"], ["reencode", "--resume", "-c", "250", A, "s.zarr/h/x"]),
    Operation("reencode --force", ["reencode", "--force", "-c", "300", A, E]),
    Operation("reencode to v2", ["reencode", "--zarr-format=2", "-s", "none", "s.zarr", "t.zarr"],
              ["reencode", "--resume", "--zarr-format=2", "-s", "none", "s.zarr", "t.zarr"]),
    Operation("migrate", ["migrate", "v2.zarr"], keeps=(V2,)),
    Operation("migrate --remove-old", ["migrate", "--remove-old", "v2.zarr"], keeps=(V2,)),
    Operation("create", ["create", "s.zarr/n/m/x", "--shape=100", "-t", "float64"],
              ["create", "--if-missing", "s.zarr/n/m/x", "--shape=100", "-t", "float64"]),
    Operation("create --group", ["create", "--group", "s.zarr/n"], ["create", "--if-missing", "--group", "s.zarr/n"]),
    Operation("create --force", ["create", "--force", A, "--shape=8", "-t", "float64"]),
    Operation("create --force, v2", ["create", "--force", "--zarr-format=2", V2, "--shape=8", "-t", "float64"]),
    Operation("import", ["import", *raw("new"), "s.zarr/n/y", *NEW[2:]], ["import", "--force", *raw("new"), "s.zarr/n/y", *NEW[2:]]),
    Operation("import --force", ["import", "--force", *raw("new"), A, *NEW[2:]], keeps=(A,)),
    Operation("clean", ["clean", "--age=0", "c.zarr"]),
]

OPEN = "import numpy as np\nz = m.open_array({!r}, mode='r+')\n"
GROUP = "import numpy as np\ng = m.open_group('s.zarr', mode='r+')\n"


def on(node, line, name=None, uses="zarrc", **more):
    return Operation(f"{'Python' if uses == 'zarrc' else 'enable()'}: {name or line}", OPEN.format(node) + line, uses=uses, **more)


def below(line, name=None, **more):
    return Operation(f"Python: {name or line}", GROUP + line, **more)


WHOLE = f"z[...] = np.arange(100000, {100000 + N}, dtype='i4')"
PART = "z[100:600] = np.arange(200000, 200500, dtype='i4')"
APPEND = f"z.append(np.arange({N}, {N + 300}, dtype='i4'))"
CALLS = [
    on(A, WHOLE, "z[...] = x", mixes=(A,)),
    on(P, WHOLE, "z[...] = x", mixes=(P,), uses="zarr"),
    on(SH, PART, "z[i:j] = x", mixes=(SH,)),
    on(PSH, PART, "z[i:j] = x", mixes=(PSH,), uses="zarr"),
    on(A, APPEND, "z.append(x)", lags=True),
    on(P, APPEND, "z.append(x)", mixes=(P,), repeat="", uses="zarr"),  # the shape comes before the elements
    on(A, "z.resize((300,))", lags=True),
    on(P, "z.resize((300,))", mixes=(P,), uses="zarr"),  # chunks go before the shape changes
    on(A, "z.attrs['k'] = [2] * 50", lags=True),
    on(P, "z.attrs['k'] = [2] * 50", uses="zarr"),
    on(SH, "z.oindex[[1, 300, 900]] = 5", mixes=(SH,)),
    on(A, "z.vindex[[1, 300, 900]] = 5", mixes=(A,)),
    on(A, "z.blocks[1] = 5", mixes=(A,)),
    on(A, "z.write(slice(10, 700), np.full(690, 5, 'i4'))", "z.write(key, x)", mixes=(A,)),
    on(A, "z.update_attributes({'x': 1, 'y': 2})", lags=True),
    on(A, "z.attrs.put({'x': 1})", lags=True),
    on(A, "del z.attrs['k']", lags=True),
    below("g.create_array('n', shape=(1024,), chunks=(256,), dtype='i4', overwrite=True)[:] = 1", "g.create_array(name)[:] = x", mixes=("s.zarr/n",)),
    below("g.create_array('a', shape=(8,), dtype='f8', overwrite=True)", "g.create_array(overwrite=True)"),
    below("g.create_group('n/m')"),
    below("g.create_group('g', overwrite=True)"),
    below("g.require_array('n', shape=(8,), dtype='i4')", "g.require_array(name)"),
    below("g.require_group('n')"),
    below("g['n'] = np.arange(1024, dtype='i4')", "g[name] = x"),
    below("del g['g']", "del g[name]"),
    below("g.move('g', 'h')"),
    below("list(g.create_hierarchy({'n': m.open_group('s.zarr', mode='r').metadata, 'n/x': m.open_array('s.zarr/a', mode='r').metadata}))",
          "g.create_hierarchy(nodes)"),
    below("m.copy(g['a'], g, name='n')", "copy(a, g)", repeat=GROUP + "m.copy(g['a'], g, name='n', if_exists='skip')"),
    below("m.copy(g['a'], g['g'], name='e', if_exists='replace')", "copy(if_exists='replace')"),
    Operation("Python: copy_store(s, t)", "m.copy_store('s.zarr', 't.zarr')", "m.copy_store('s.zarr', 't.zarr', if_exists='replace')"),
    Operation("Python: consolidate_metadata(s)", "m.consolidate_metadata('p.zarr')"),
    Operation("Python: save(s, x)", "import numpy as np\nm.save('t.zarr', np.arange(1024, dtype='i4'))"),
    Operation("Python: save_group(s, x, y)", "import numpy as np\nm.save_group('t.zarr', np.arange(9), np.arange(7))"),
    Operation("Python: open_array(mode='w')", "m.open_array('s.zarr/a', mode='w', shape=(8,), dtype='f8')"),
    Operation("Python: open_group(mode='w')", "m.open_group('s.zarr/g', mode='w')"),
    Operation("Python: from_array(s, data=a)", "m.from_array('t.zarr', overwrite=True, data=m.open_array('s.zarr/a', mode='r'))"),
    Operation("Python: full(s)", "m.full((1024,), 5, store='t.zarr', overwrite=True, chunks=(256,), dtype='i4')", mixes=("t.zarr",)),
    Operation("Python: Store.set, Store.delete", "with m.open_store('s.zarr') as s:\n    s.set('x', b'1')\n    s.delete('x')"),
]

# ---- pairs: the first is stopped before each of its calls, the second runs, the first goes on ----

LEFT = {
    "write": ["import", *raw("new")[:1], f"{A}[:]", "-t", "int32"],
    "part": ["import", "part.raw", f"{A}[100:600]", "-t", "int32"],
    "shard part": ["import", "part.raw", f"{SH}[100:600]", "-t", "int32"],
    "append": ["append", A, "add.raw"],
    "append to shards": ["append", SH, "add.raw"],
    "grow": ["resize", A, "1300"],
    "shrink": ["resize", A, "300"],
    "shrink shards": ["resize", SH, "300"],
    "attrs": ["attrs", "set", A, "k", "2"],
    "attrs of a group": ["attrs", "set", "s.zarr/g", "k", "2"],
    "consolidate": ["consolidate", "s.zarr"],
    "cp a group": ["cp", "s.zarr/g", "s.zarr/h"],
    "cp an array": ["cp", A, "s.zarr/h/x"],
    "mv a group": ["mv", "s.zarr/g", "s.zarr/h"],
    "mv an array": ["mv", A, "s.zarr/h/x"],
    "rm -r": ["rm", "-r", "s.zarr/g"],
    "rm": ["rm", A],
    "create": ["create", "s.zarr/h/x", "--shape=100", "-t", "float64"],
    "create --force": ["create", "--force", A, "--shape=8", "-t", "float64"],
    "reencode": ["reencode", "-c", "300", A, "s.zarr/h/x"],
    "clean": ["clean", "--age=0", "s.zarr"],
    "attrs, v2": ["attrs", "set", V2, "k", "2"],
    "append, v2": ["append", V2, "add.raw"],
    "mv, v2": ["mv", V2, "v2.zarr/b"],
    "mv to another store": ["mv", A, "t.zarr"],
    "mv, v2, to another store": ["mv", V2, "t.zarr"],
}
RIGHT = {**LEFT,
         "write": ["import", "new2.raw", f"{A}[:]", "-t", "int32"],
         "part": ["import", "part2.raw", f"{A}[200:700]", "-t", "int32"],
         "shard part": ["import", "part2.raw", f"{SH}[200:700]", "-t", "int32"],
         "append": ["append", A, "few.raw"],
         "append to shards": ["append", SH, "few.raw"],
         "grow": ["resize", A, "1400"],
         "attrs": ["attrs", "set", A, "j", "3"],
         "attrs of a group": ["attrs", "set", "s.zarr/g", "j", "3"],
         "attrs, v2": ["attrs", "set", V2, "j", "3"],
         "append, v2": ["append", V2, "few.raw"]}
MEETINGS = [  # operations that touch the same node
    ["write", "part", "append", "grow", "shrink", "attrs", "consolidate", "cp an array", "mv an array", "rm", "create --force", "reencode", "clean"],
    ["shard part", "append to shards", "shrink shards", "attrs of a group", "cp a group", "mv a group", "rm -r", "consolidate", "clean"],
    ["cp a group", "cp an array", "mv a group", "mv an array", "create", "reencode"],
    ["attrs, v2", "append, v2", "mv, v2"],
]
PAIRS = sorted({(left, right) for names in MEETINGS for left in names for right in names}
               | {("attrs", "mv to another store"), ("append", "mv to another store"), ("mv to another store", "attrs"),
                  ("mv, v2, to another store", "attrs, v2")})

# ---- the stores before each operation ----

TEMPLATE = [
    ["create", "--group", "s.zarr"],
    ["create", A, f"--shape={N}", "-t", "int32", "-c", str(UNIT), "-C", "gzip:1", "-q", "-a", '{"k": 1}'],
    ["import", "old.raw", f"{A}[:]", "-t", "int32"],
    ["create", SH, f"--shape={N}", "-t", "int32", "-c", "64", "-s", str(UNIT), "-C", "zstd:1", "-q"],
    ["import", *raw("old"), f"{SH}[:]"],
    ["import", *raw("nine"), E, "--shape=9", "-c", "5", "-q"],
    ["attrs", "set", "s.zarr/g", "k", "1"],
    ["cp", "-q", "s.zarr", "p.zarr"],
    ["cp", "-q", "s.zarr", "c.zarr"],
    ["consolidate", "-q", "s.zarr"],
    ["create", "--group", "v2.zarr", "--zarr-format=2"],
    ["create", V2, "--zarr-format=2", f"--shape={N}", "-t", "<i4", "-c", str(UNIT), "-C", "zlib:1", "-q", "-a", '{"k": 1}'],
    ["import", *raw("old"), f"{V2}[:]"],
    ["cp", "-q", "v2.zarr", "p2.zarr"],
    ["consolidate", "-q", "v2.zarr"],
]
