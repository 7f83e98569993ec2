"""s3_cases - the cases of `net --s3`: S3 clients beside each other, each with its own defaults, all from Python.

zarrc and tensorstore read and write arrays. obstore, awscrt and s3fs know no arrays: they move the bytes of the same
objects. Each sample is a process of its own, and prints CPU seconds and seconds of wall time as JSON."""
import asyncio
import contextlib
import functools
import importlib.util
import json
import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time

BUCKET = "bucket"
FULL = {"large": 256 << 20, "range": 8 << 20, "reads": 4, "small": 4096, "chunks": 1024, "picked": 512, "arrays": 10000, "upload": 256 << 20}
SMALL, CHUNK = 16 << 10, 64 << 10
LATENCY_MS = 30
SLOW_S = 20  # a client whose sample takes longer is measured in one round
# name: what the table calls it, runs of a process of which the last one counts, the printed unit for a second of CPU
CASES = {"get": ("ranges of 8 MiB, CPU ms for a GiB", 2, lambda sizes: 1000 * 2**30 / (sizes["reads"] * sizes["large"])),
         "small": ("objects of 16 KiB, CPU us each", 2, lambda sizes: 1e6 / sizes["small"]),
         "list": ("list the names of 10^4 arrays, CPU ms", 2, lambda sizes: 1000),
         "open": ("open 10^4 arrays of a group, CPU us each", 1, lambda sizes: 1e6 / sizes["arrays"]),
         "chunks": (f"512 random chunks of 64 KiB, cold connections, {LATENCY_MS} ms more: latencies", 1, None),
         "upload": ("upload of 256 MiB, CPU ms for a GiB", 2, lambda sizes: 1000 * 2**30 / sizes["upload"])}


def make_data(folder, sizes):
    """The arrays, as files. A bucket gets a copy, because only values that were uploaded have an ETag."""
    import numpy as np

    import zarrc
    data = np.frombuffer(random.Random(1).randbytes(1 << 20), "u1")
    data = np.tile(np.maximum(data, 1), -(-max(sizes["large"], sizes["small"] * SMALL, sizes["chunks"] * CHUNK) >> 20) or 1)
    for name, length, chunk, shard in (("large", sizes["large"], sizes["range"], sizes["large"]), ("small", sizes["small"] * SMALL, SMALL, None),
                                       ("chunks", sizes["chunks"] * CHUNK, CHUNK, None)):
        zarrc.create_array(folder, name=name, data=data[:length], chunks=(chunk,), shards=shard and (shard,), compressors=None)
    group = zarrc.create_group(folder, path="group")
    for i in range(sizes["arrays"]):
        group.create_array(f"a{i}", shape=(4,), chunks=(4,), dtype="u1")


def object_ranges(sizes):
    return [(first, first + sizes["range"]) for first in range(0, sizes["large"], sizes["range"])]


def document_keys(sizes):
    return [f"group/a{i}/zarr.json" for i in range(sizes["arrays"])]


def small_keys(sizes):
    return [f"small/c/{i}" for i in range(sizes["small"])]


def picked_chunks(sizes):
    return random.Random(2).sample(range(sizes["chunks"]), sizes["picked"])


class Client:
    """One library. Each method of a case returns how many bytes or names it had."""

    def __init__(self, sizes):
        self.sizes, self.endpoint, self.value = sizes, os.environ["AWS_ENDPOINT_URL"], bytes([1]) * sizes["upload"]
        self.connect()

    @functools.cached_property
    def target(self):
        """An array of one chunk, which upload() writes; new only the first time."""
        return self.make_array("upload", self.sizes["upload"])

    def get(self):
        return sum(self.read_ranges("large/c/0", object_ranges(self.sizes)) for _ in range(self.sizes["reads"]))

    def small(self):
        return self.read_values(small_keys(self.sizes))

    def open(self):
        return self.read_values(document_keys(self.sizes)) and self.sizes["arrays"]

    def chunks(self):
        return self.read_values([f"chunks/c/{i}" for i in picked_chunks(self.sizes)])

    def upload(self):
        self.write_value("upload/c/0", self.value)
        return len(self.value)


class Zarrc(Client):
    def connect(self):
        import zarrc
        self.zarrc = zarrc
        self.store = zarrc.open_store(f"s3://{BUCKET}", mode="a")

    def get(self):
        array = self.zarrc.open_array(self.store, path="large", mode="r")
        return sum(array[...].nbytes for _ in range(self.sizes["reads"]))

    def small(self):
        return self.zarrc.open_array(self.store, path="small", mode="r")[...].nbytes

    def list(self):
        return len(list(self.store.list_dir("group"))) - 1

    def open(self):
        return len(dict(self.zarrc.open_group(self.store, path="group", mode="r").arrays()))

    def chunks(self):
        array = self.zarrc.open_array(self.store, path="chunks", mode="r")
        return sum(part.nbytes for part in array.read_many([slice(i * CHUNK, (i + 1) * CHUNK) for i in picked_chunks(self.sizes)]))

    def make_array(self, name, n):
        return self.zarrc.create_array(self.store, name=name, shape=(n,), chunks=(n,), dtype="u1", compressors=None, overwrite=True)

    def upload(self):
        import numpy as np
        self.target[...] = np.frombuffer(self.value, "u1")
        return len(self.value)


class Tensorstore(Client):
    def connect(self):
        import tensorstore
        self.ts = tensorstore
        self.context = tensorstore.Context()

    def place(self, path):
        return {"driver": "s3", "bucket": BUCKET, "path": f"{path}/", "endpoint": self.endpoint, "aws_region": os.environ["AWS_REGION"],
                "aws_credentials": {"type": "environment"}}

    def open_array(self, path, **more):
        return self.ts.open({"driver": "zarr3", "kvstore": self.place(path), **more}, context=self.context)

    def get(self):
        array = self.open_array("large").result()
        return sum(array.read().result().nbytes for _ in range(self.sizes["reads"]))

    def small(self):
        return self.open_array("small").result().read().result().nbytes

    def list(self):
        return len(self.ts.KvStore.open(self.place("group"), context=self.context).result().list().result()) - 1

    def open(self):
        return len([future.result() for future in [self.open_array(f"group/a{i}") for i in range(self.sizes["arrays"])]])

    def chunks(self):
        array = self.open_array("chunks").result()
        parts = [array[i * CHUNK:(i + 1) * CHUNK].read() for i in picked_chunks(self.sizes)]
        return sum(part.result().nbytes for part in parts)

    def make_array(self, name, n):
        grid = {"name": "regular", "configuration": {"chunk_shape": [n]}}
        metadata = {"shape": [n], "data_type": "uint8", "chunk_grid": grid, "codecs": [{"name": "bytes"}]}
        return self.open_array(name, create=True, delete_existing=True, metadata=metadata).result()

    def upload(self):
        import numpy as np
        self.target.write(np.frombuffer(self.value, "u1")).result()
        return len(self.value)


class Obstore(Client):
    def connect(self):
        import obstore
        from obstore.store import S3Store
        self.obstore = obstore
        self.store = S3Store(BUCKET, client_options={"allow_http": True, "timeout": "600s"})

    async def gather(self, function, keywords, flight):
        todo, found = iter(keywords), []

        async def worker():
            for each in todo:
                found.append(len(memoryview(await function(each))))

        await asyncio.gather(*(worker() for _ in range(flight)))
        return sum(found)

    def read_ranges(self, key, ranges):
        return asyncio.run(self.gather(lambda r: self.obstore.get_range_async(self.store, key, start=r[0], end=r[1]), ranges, 16))

    def read_values(self, keys, flight=32):
        async def get(key):
            return await (await self.obstore.get_async(self.store, key)).bytes_async()
        return asyncio.run(self.gather(get, keys, flight))

    def chunks(self):
        return self.read_values([f"chunks/c/{i}" for i in picked_chunks(self.sizes)], self.sizes["picked"])

    def list(self):
        return len(self.obstore.list_with_delimiter(self.store, "group")["common_prefixes"])

    def write_value(self, key, data):
        self.obstore.put(self.store, key, data)


class S3fs(Client):
    def connect(self):
        import s3fs
        self.fs = s3fs.S3FileSystem(key=os.environ["AWS_ACCESS_KEY_ID"], secret=os.environ["AWS_SECRET_ACCESS_KEY"], endpoint_url=self.endpoint,
                                    client_kwargs={"region_name": os.environ["AWS_REGION"]}, use_listings_cache=False)

    def read_ranges(self, key, ranges):
        return sum(map(len, self.fs.cat_ranges([f"{BUCKET}/{key}"] * len(ranges), [r[0] for r in ranges], [r[1] for r in ranges])))

    def read_values(self, keys):
        return sum(map(len, self.fs.cat([f"{BUCKET}/{key}" for key in keys]).values()))

    def list(self):
        return len(self.fs.ls(f"{BUCKET}/group", detail=False)) - 1

    def write_value(self, key, data):
        self.fs.pipe_file(f"{BUCKET}/{key}", data)


class Awscrt(Client):
    def connect(self):
        from awscrt import auth, http, io, s3
        self.s3, self.http = s3, http
        bootstrap = io.ClientBootstrap(loops := io.EventLoopGroup(), io.DefaultHostResolver(loops))
        keys = auth.AwsCredentialsProvider.new_static(os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"])
        self.client = s3.S3Client(bootstrap=bootstrap, region=os.environ["AWS_REGION"], tls_mode=s3.S3RequestTlsMode.DISABLED, part_size=8 << 20,
                                  signing_config=s3.create_default_s3_signing_config(region=os.environ["AWS_REGION"], credential_provider=keys))

    def start(self, kind, method, key, data=None, **more):
        import io
        headers = self.http.HttpHeaders([("host", self.endpoint.removeprefix("http://"))])
        if data is not None:
            headers.add("content-length", str(len(data)))
        request = self.http.HttpRequest(method, f"/{BUCKET}/{key}", headers, data and io.BytesIO(data))
        found, lock = [0], threading.Lock()

        def on_body(chunk, **unused):
            with lock:
                found[0] += len(chunk)

        return self.client.make_request(type=kind, request=request, on_body=on_body, **more).finished_future, found

    def get(self):
        """The library cuts one value into ranges itself."""
        total = 0
        for _ in range(self.sizes["reads"]):
            future, found = self.start(self.s3.S3RequestType.GET_OBJECT, "GET", "large/c/0")
            future.result()
            total += found[0]
        return total

    def read_values(self, keys):
        started = [self.start(self.s3.S3RequestType.DEFAULT, "GET", key, operation_name="GetObject") for key in keys]
        for future, _ in started:
            future.result()
        return sum(found[0] for _, found in started)

    list = None  # it has no listing

    def write_value(self, key, data):
        self.start(self.s3.S3RequestType.PUT_OBJECT, "PUT", key, data)[0].result()


CLIENTS = {"zarrc": Zarrc, "obstore": Obstore, "tensorstore": Tensorstore, "awscrt": Awscrt, "s3fs": S3fs}


def count_requests():
    """Those that the server has logged."""
    if "S3_LOG" not in os.environ:
        return 0
    time.sleep(0.3)  # an answer comes before its line
    return pathlib.Path(os.environ["S3_LOG"]).read_bytes().count(b"\n")


def measure(name, case, runs):
    """The last of several runs in this process: only it has its costs and requests counted."""
    client = CLIENTS[name](FULL)
    for _ in range(runs):
        first, before, began = count_requests(), resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        found = getattr(client, case)()
        wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"cpu": cpu, "wall": wall, "requests": count_requests() - first, "found": found}


# ---- all of them beside each other ----


def sample(name, case, environment):
    """One process."""
    _, runs, *_ = CASES[case]
    done = subprocess.run([sys.executable, __file__, name, case, str(runs)], env=environment, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        raise RuntimeError(f"{name}, {case}: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def find_clients():
    """(names, {name: why it is left out})."""
    missing = {name: f"no module {name}" for name in CLIENTS if not importlib.util.find_spec(name)}
    return [name for name in CLIENTS if name not in missing], missing


@contextlib.contextmanager
def start_servers():
    """Environments of clients: of versitygw, and of a server without delay and one with."""
    import s3_server
    import scripted_server

    import zarrc
    with tempfile.TemporaryDirectory(prefix="zarrc-bench-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as place:
        folder = pathlib.Path(place)
        make_data(folder / BUCKET, FULL)
        (folder / "buckets" / BUCKET).mkdir(parents=True)
        os.environ["VGW_ACCESS_LOG"] = str(folder / "log")
        with s3_server.start_versitygw(folder / "buckets") as endpoint, scripted_server.run_server(folder) as fast, scripted_server.run_server(folder) as slow:
            slow.choose_faults = lambda request: {"latency": str(LATENCY_MS)}
            found = [{**os.environ, **s3_server.make_variables(url)} for url in
                     (endpoint, fast.environment["ZR_SERVER"], slow.environment["ZR_SERVER"])]
            found[0]["S3_LOG"] = os.environ["VGW_ACCESS_LOG"]
            os.environ.update(found[0])
            zarrc.copy_store(str(folder / BUCKET), f"s3://{BUCKET}")
            yield found


def sample_case(name, case, servers):
    """What the table has of one round: the number of its unit, and the requests."""
    plain, fast, slow = servers
    unit, _, scale = CASES[case]
    if case == "chunks":
        walls = [sample(name, case, environment)["wall"] for environment in (slow, fast)]
        return (walls[0] - walls[1]) / LATENCY_MS * 1000, sample(name, case, plain)["requests"]
    found = sample(name, case, plain)
    return found["cpu"] * scale(FULL), found["requests"]


def compare(rounds, only=None):
    """Prints the medians of interleaved rounds; gives them by case and client."""
    names, missing = find_clients()
    for name, why in missing.items():
        print(f"{name} is left out: {why}")
    results = {}
    print("| case | " + " | ".join(names) + " | load |\n|---" + "|---" * (len(names) + 1) + "|", flush=True)
    with start_servers() as servers:
        for case in only or CASES:
            rows, slow = {name: [] for name in names if getattr(CLIENTS[name], case)}, set()
            for i in range(rounds):
                for name in random.Random(i).sample(list(rows), len(rows)):
                    began = time.perf_counter()
                    if name not in slow:
                        rows[name].append(sample_case(name, case, servers))
                    if time.perf_counter() - began > SLOW_S:
                        slow.add(name)
            found = results[case] = {name: [statistics.median(numbers) for numbers in zip(*rows[name], strict=True)] for name in rows}
            base = found["zarrc"][0]
            print(f"| {CASES[case][0]} | " + " | ".join(
                f"{found[name][0]:.3g}{'' if name == 'zarrc' or base <= 0 else f' ({base / found[name][0]:.2f})'}, {found[name][1]:.0f} requests" if name in found
                else "none" for name in names) + f" | {os.getloadavg()[0]:.1f} |", flush=True)
    return results


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))), flush=True)
    os._exit(0)  # threads of some packages abort at the end of the interpreter
