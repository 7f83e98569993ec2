"""Random arrays behind a server that makes faults at random, compared with numpy arrays while others write: a read gives the
right elements or an error, and never elements of two versions of an object."""
import collections
import itertools
import json
import pathlib
import random
import shutil
import zipfile
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cases
import strategies
from scripted_server import run_server
from zarrc_abi import ZarrcError
from zarrc_selection import Selection

EXAMPLES = max(12, settings.default.max_examples // 8)
pytestmark = pytest.mark.timeout(3600)
# What a fault may make of a read. DENIED: of a status. UNSUPPORTED: the server does not tell a length.
ERRORS = {"IO", "CONFLICT", "CORRUPT", "DENIED", "UNSUPPORTED"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with run_server(tmp_path_factory.mktemp("www")) as found:
        yield found


class Faults:
    """Which fault a request gets depends on its key, its range, and how often it was sent: not on the order of requests."""

    def __init__(self, seed, root, names=()):
        self.seed, self.root, self.names, self.counts, self.seen = seed, root, names, {}, set()

    def __call__(self, request):
        wanted = request.fields.get("range", "")
        key = f"{self.seed} {request.method} {request.path.removeprefix('/bucket').lstrip('/x0123456789')} {wanted}"
        self.counts[key] = count = self.counts.get(key, 0) + 1
        rng = random.Random(key)
        if rng.random() < 0.6 or count > rng.choice([1, 1, 1, 9]):
            return {}
        name = rng.choice(self.names or [name for name in sorted(FAULTS) if wanted or name not in ONLY_OF_RANGES])
        file = self.root / request.path.strip("/")
        self.seen.add(name)
        return FAULTS[name](rng.randrange(max(1, file.stat().st_size if file.is_file() else 1)), request.path)


# Each: a place in the value, and its path -> parameters of the server
FAULTS = {
    "reset": lambda n, path: {"reset": n},
    "no answer": lambda n, path: {"reset": -1},
    "closed": lambda n, path: {"close": n},
    "lost": lambda n, path: {"lost": 1},
    "busy": lambda n, path: {"status": [429, 500, 502, 503, 504][n % 5], "retry_after": 0},
    "refused": lambda n, path: {"status": [400, 401, 403, 451, 501][n % 5]},
    "long": lambda n, path: {"length": 1 << 20, "close": n},
    "short": lambda n, path: {"length": n, "close": 1 << 30},
    "other range": lambda n, path: {"range": f"bytes {n + 1}-{n + 8}/{2 * n + 99}"},
    "other length": lambda n, path: {"range": f"bytes 0-{n}/{n}"},
    "whole": lambda n, path: {"whole": 1},
    "chunked": lambda n, path: {"chunked": 1},
    "chunked, closed": lambda n, path: {"chunked": 1, "close": n},
    "bare": lambda n, path: {"bare": 1},
    "encoded": lambda n, path: {"encoding": "gzip"},
    "other version": lambda n, path: {"etag": f'"{n}"'},
    "a version each": lambda n, path: {"etag": "count"},
    "weak version": lambda n, path: {"etag": 'W/"1"'},
    "old value": lambda n, path: {"path": f"/old{path}"},
    "hints": lambda n, path: {"informs": 2},
    "headers": lambda n, path: {"headers": 40},
}
# An answer without a range that has another length says that the value has this length.
ONLY_OF_RANGES = {"short", "other range", "other length"}


class Run:
    """An array in a folder that the server has, and what it holds now and before the last write."""

    def __init__(self, context, server, case, seed, kind):
        self.server, self.case, self.packed, self.is_bucket = server, case, kind == "archive", kind == "bucket"
        self.context, self.root = context, pathlib.Path(server.root)
        self.name, self.draw = f"{next(NUMBERS)}", zlib.crc32(f"{seed}{case}".encode())  # small seeds are frequent
        self.rng = np.random.default_rng(self.draw)
        self.writer = context.store(str(self.root / "made" / self.name), create=True).create(document=case.document)
        self.model = self.writer.read(case.dtype)
        self.publish()
        self.reader = self.open()

    def publish(self):
        """Gives the server a new version, and keeps the last one."""
        made, place = self.root / "made" / self.name, self.root / ("bucket" * self.is_bucket) / f"x{self.name}"
        file = place.with_suffix(".zip") if self.packed else place
        if file.exists():
            old = self.root / "old" / file.relative_to(self.root)
            old.parent.mkdir(parents=True, exist_ok=True)
            remove(old)
            file.rename(old)
        if self.packed:
            with zipfile.ZipFile(file, "w") as archive:
                for path in sorted(made.rglob("*")):
                    if path.is_file():
                        archive.write(path, path.relative_to(made))
        else:
            shutil.copytree(made, file)
        self.url = f"s3://bucket/{file.name}" if self.is_bucket else f"{self.server.environment['ZR_SERVER']}/{file.name}"

    def open(self):
        more = {"anonymous": True, "endpoint": self.server.environment["ZR_SERVER"], "style": "path"} if self.is_bucket else {}
        return self.context.store(self.url, config=json.dumps({"tries": 2, **more}).encode()).open()

    def write(self, chosen):
        values = self.case.values(self.rng, chosen.flat.shape)
        self.writer.write(values, chosen.make())
        self.model = self.model.copy()
        strategies.store_into(self.model, chosen.flat, values)
        self.publish()

    def read(self, chosen, memory, pipeline, versions):
        view = cases.layout(self.rng, chosen.flat.shape, self.case.dtype)
        self.reader.read_into(view, chosen.make(), memory=memory, pipeline=pipeline)
        same_as_one(view, [strategies.apply(model, chosen.flat) for model in versions], self.find_objects(chosen))

    def find_objects(self, chosen):
        """For each element the number of its object; of an archive all are one."""
        numbers = np.zeros(self.model.shape, int)
        if not self.packed:
            for d, chunk in enumerate(self.case.chunks):
                shape = [1] * len(self.case.chunks)
                shape[d] = -1
                numbers = numbers * 1000 + (np.arange(self.model.shape[d]) // chunk).reshape(shape)
        return strategies.apply(numbers, chosen.flat)

    def remove(self):
        for place in ("", "old", "bucket", "old/bucket"):
            for path in (self.root / place).glob(f"x{self.name}*"):
                remove(path)
        remove(self.root / "made" / self.name)


NUMBERS = itertools.count()


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def same_as_one(got, versions, objects):
    """Whether the elements of each object are those of one version."""
    same = [as_bytes(got) == as_bytes(version) for version in versions]
    wrong = [number for number in np.unique(objects) if not any(s[objects == number].all() for s in same)]
    assert not wrong, (wrong, got, versions)


def as_bytes(elements):
    """Elements that compare bit by bit."""
    native = np.ascontiguousarray(cases.native(elements))
    return native.view(f"V{native.itemsize}") if native.ndim else native.reshape(1).view(f"V{native.itemsize}").reshape(())


def try_to(function, *arguments):
    """Whether it succeeds. It may fail as a fault makes it fail."""
    try:
        function(*arguments)
    except ZarrcError as error:
        assert error.code in ERRORS, error
        return False
    return True


sharded = strategies.cases_v3().filter(lambda case: "sharding_indexed" in str(case.document))
regular = st.one_of(sharded, strategies.cases_v3(), strategies.cases_v2()).filter(
    lambda case: case.document.get("chunk_grid", {"name": "regular"})["name"] == "regular" and 0 not in case.shape)


@pytest.mark.parametrize("kind", ["folder", "archive", "bucket"])
def test_reads(context, server, kind):
    seen = collections.Counter()

    @settings(max_examples=EXAMPLES)
    @given(case=regular, data=st.data(), seed=st.integers(0, 2**32 - 1))
    def examples(case, data, seed):
        server.choose_faults = None
        run = Run(context, server, case, seed, kind)
        for turn in range(3):
            before = run.model
            run.write(data.draw(strategies.selections(case.shape, case.chunks), "write"))
            server.choose_faults = faults = Faults(f"{run.draw} {turn}", run.root)
            if data.draw(st.booleans(), "reopen"):
                try_to(lambda: setattr(run, "reader", run.open()))
            for _ in range(4):
                chosen = data.draw(strategies.selections(case.shape, case.inner), "read")
                kinds = data.draw(st.sampled_from(["host", "fake"])), data.draw(st.sampled_from(["waves", "serial"]))
                seen[try_to(run.read, chosen, *kinds, [run.model, before])] += 1
            server.choose_faults = None
            seen.update(faults.seen)
            if run.packed:
                run.reader = run.open()
            run.read(chosen, "host", "waves", [run.model])  # after the faults
        run.remove()
    examples()
    print(seen)
    assert len(seen) > len(FAULTS) // 2 and min(seen[True], seen[False]) > 0


Chosen = collections.namedtuple("Chosen", "flat make")


@pytest.mark.parametrize("codecs", [[cases.LITTLE], [cases.LITTLE, cases.zstd()]], ids=["raw", "zstd"])
@pytest.mark.parametrize("kind", ["folder", "archive", "bucket"])
def test_old_values_of_shards(context, server, kind, codecs):
    """Half of the requests get the version before the last: an index of one version is not used for another."""
    server.choose_faults, shape = None, (16, 24)
    document = cases.document_v3("int32", 3, [cases.sharding((2, 4), codecs)], shape, (8, 12))
    run = Run(context, server, strategies.Case(document, np.dtype("i4"), shape, (8, 12), (2, 4), pool=np.arange(99)), 5, kind)
    whole, done = Chosen(strategies.flat_indexes(shape), lambda: None), collections.Counter()
    for turn in range(8):
        before = run.model
        run.write(whole)
        run.reader = run.open()
        for part in range(8):
            server.choose_faults = Faults(f"{turn} {part}", run.root, ["old value"])
            box = slice(part, 16), slice(2 * part, 24)
            chosen = Chosen(whole.flat[box], lambda box=box: Selection.dims(shape, *box))
            done[try_to(run.read, chosen, "host", "waves", [run.model, before])] += 1
            server.choose_faults = None
    run.remove()
    print(done)
    assert done[True]
