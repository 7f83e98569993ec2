"""The commands that read, with a hierarchy and an archive in a bucket; what errors, credentials and a hostile server do."""
import collections
import concurrent.futures
import datetime
import email.utils
import itertools
import json
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.parse
import zipfile

import numpy as np
import pytest
import s3_server
from conftest import PROGRAM
from http_answers import answer_propfind, start_server
from s3_server import BUCKET, ID, SECRET, answer_error, answer_list, make_variables, start_service, start_versitygw

DATA = np.arange(40 * 40, dtype="int32").reshape(40, 40)
URL = f"s3://{BUCKET}/pre fix/x.zarr"


def skip_without_libraries(zarrc):
    done = zarrc("info", "s3://any/x.zarr", "--store-option=anonymous=true", "--store-option=endpoint=http://127.0.0.1:9", code=None)
    if done.code == 6:
        pytest.skip(done.err)


@pytest.fixture(scope="module")
def buckets(tmp_path_factory, zarrc):
    skip_without_libraries(zarrc)
    folder = tmp_path_factory.mktemp("buckets")
    np.save(folder / "a.npy", DATA)
    data = folder / "data" / BUCKET / "pre fix"
    zarrc("import", folder / "a.npy", data / "x.zarr/a", "--chunks=10,10")
    zarrc("import", folder / "a.npy", data / "x.zarr/in/s +%", "--chunks=10,10", "--shards=20,20", '--attributes={"units": "K"}')
    with zipfile.ZipFile(data / "x.zarr.zip", "w") as archive:
        for file in sorted((data / "x.zarr").rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(data / "x.zarr"))
    return folder / "data"


@pytest.fixture
def server(buckets):
    with start_service(buckets / BUCKET) as found:
        yield found


@pytest.fixture(scope="module", params=["own", "versitygw"])
def endpoint(request, buckets):
    if request.param == "own":
        with start_service(buckets / BUCKET, page=7) as found:
            yield found.url
    else:
        program, why = s3_server.find_versitygw()
        if not program:
            pytest.skip(why)
        with start_versitygw(buckets) as found:
            yield found


@pytest.fixture
def call(zarrc, monkeypatch):
    """Runs a command with no other variables of AWS than these."""
    def run(*words, code=0, env, **more):
        done = zarrc(*words, code=code, env=env, **more)
        assert SECRET.encode() not in done.out and SECRET not in done.err
        return done
    return run


# ---- a server as it should be ----


@pytest.mark.parametrize("form", ["x.zarr", "x.zarr.zip"])
def test_reading_commands(call, endpoint, buckets, tmp_path, form):
    env, url = make_variables(endpoint), f"s3://{BUCKET}/pre fix/{form}"
    assert call("info", "--json", f"{url}/in/s%20+%25", env=env).json["shape"] == [40, 40]
    assert call("ls", "-R", url, env=env).text.splitlines() == ["a", "in/", "in/s +%"]
    assert call("attrs", "get", f"{url}/in/s%20+%25", "units", env=env).text == '"K"\n'
    assert call("cat", f"{url}/a[3,:4]", env=env).text.split() == ["120", "121", "122", "123"]
    call("export", f"{url}/in/s%20+%25", tmp_path / "s.npy", env=env)
    np.testing.assert_array_equal(np.load(tmp_path / "s.npy"), DATA)
    local = buckets / BUCKET / "pre fix/x.zarr"
    assert call("diff", local, url, env=env).code == 0
    assert "2 arrays" in call("verify", url, env=env).err
    call("cp", url, tmp_path / "copy.zarr", env=env)
    assert call("diff", local, tmp_path / "copy.zarr", env=env).code == 0


def test_bucket_without_a_prefix(call, endpoint):
    env = make_variables(endpoint)
    assert call("ls", "-R", f"s3://{BUCKET}:/pre fix/x.zarr", env=env, code=None).text.split("\n")[0] == "a"


def test_requests(call, server):
    def count(*command):
        server.log.clear()
        call(*command, env=make_variables(server.url))
        return [row.split("x.zarr", 1)[1].split()[0] for row in server.log]

    assert count("cat", f"{URL}/a[0,:4]") == ["/a/zarr.json", "/a/c/0/0"]
    assert count("cat", f"s3://{BUCKET}/pre fix/x.zarr.zip/a[0,:4]") == [".zip"] * 3


def test_writing_commands(call, endpoint, buckets):
    env, url, local = make_variables(endpoint), f"s3://{BUCKET}/written.zarr", buckets / BUCKET / "written.zarr"
    call("import", buckets.parent / "a.npy", f"{url}/a", "--chunks=10,10", "--shards=20,20", env=env)
    call("cp", f"s3://{BUCKET}/pre fix/x.zarr/in", f"{url}/in", env=env)
    call("attrs", "set", f"{url}/a", "units", '"m"', env=env)
    assert call("diff", buckets / BUCKET / "pre fix/x.zarr/in", f"{url}/in", env=env).code == 0
    assert json.loads((local / "a/zarr.json").read_text())["attributes"] == {"units": "m"}
    call("rm", "-r", url, env=env)
    assert not local.exists() or not any(file.is_file() for file in local.rglob("*"))


# Each command that opens a node, and the arguments of a run; {x} is the store, and {s} the array in/s +%.
COMMANDS = ["info --json {x}/a", "ls -R {x}", "tree {x}", "cat {x}/a[3,:4]", "attrs list {s}", "export --format=npy {x}/a -", "explain {x}/a[3]", "verify --json {x}",
            "diff {x}/a {s}", "plot -o - {x}/a", "summary {x}/a[3:9]", "create {x}/n/new --shape=3 --dtype=int8", "import {file} {x}/n/b --chunks=9,9 --shards=18,18",
            "import {file} {x}/n/b[:,:]", "attrs set {x}/n/b k 1", "attrs merge {x}/n/b {{\"j\":2}}", "attrs del {x}/n/b k", "resize {x}/n/b 50,41",
            "append --json {x}/a {file}", "cp {x}/a {x}/n/c", "mv {x}/n/c {x}/n/d", "reencode {x}/a {x}/n/e --zarr-format=2 --chunks=7,7", "migrate {x}/n/e",
            "consolidate {x}", "ls {x}/n/d", "rm -r {x}/n/d", "clean --json {x}", "repack {x}"]
OPEN_NONE = {"list", "calibrate", "version", "help", "completion"}


def read_files(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_every_command(call, endpoint, buckets, zarrc, tmp_path):
    """It does in a bucket what it does in a folder, says the same, and leaves the same objects."""
    help_text = zarrc("help").text
    names = {line.split()[0] for line in help_text.partition("commands:")[2].partition("locations:")[0].splitlines() if line.strip()}
    assert names - OPEN_NONE == {line.split()[0] for line in COMMANDS}
    local, place, url, file = tmp_path / "every.zarr", buckets / BUCKET / "every.zarr", f"s3://{BUCKET}/every.zarr", buckets.parent / "a.npy"
    zarrc("cp", buckets / BUCKET / "pre fix/x.zarr", local)
    call("cp", buckets / BUCKET / "pre fix/x.zarr", url, env=make_variables(endpoint))
    wrong = []
    for command in COMMANDS:
        one, two = (call(*(word.format(x=x, s=f"{x}/{s}", file=file) for word in command.split()), env=make_variables(endpoint), code=None)
                    for x, s in ((local, "in/s +%"), (url, "in/s%20+%25")))
        if not one.code == two.code == {"repack": 6, "diff": 1}.get(command.split()[0], 0):
            wrong.append((command, one.code, two.code, one.err, two.err))
        if command.split()[0] not in ("explain", "verify", "plot") and two.out.replace(url.encode(), str(local).encode()) != one.out:
            wrong.append((command, one.out, two.out))  # those tell requests, times, and where the array is
        if read_files(place) != read_files(local):
            wrong.append((command, "it leaves other objects"))
    call("rm", "-r", url, env=make_variables(endpoint))
    assert not wrong


@pytest.mark.parametrize("command", ["create {x}/n --shape=3 --dtype=int8", "import {file} {x}/n", "import {file} {x}/a[:,:]", "attrs set {x}/a k 1",
                                     "attrs merge {x}/a {{}}", "attrs del {x}/in/s%20+%25 units", "resize {x}/a 50,41", "append {x}/a {file}", "cp {x}/a {x}/n",
                                     "mv {x}/a {x}/n", "reencode {x}/a {x}/n", "migrate --zarr-format=2 {x}/a", "consolidate {x}", "rm -r {x}/a", "clean {x}"])
def test_commands_that_write_need_a_store_for_it(zarrc, buckets, command):
    """What commands that read do with a web server is in test_http_command.py."""
    sent = []

    def answer(request):
        sent.append(request.method)
        if request.method == "PROPFIND":
            return answer_propfind(request, buckets / BUCKET / "pre fix")
        file = buckets / BUCKET / "pre fix" / urllib.parse.unquote(request.path).lstrip("/")
        return (200, {}, file.read_bytes()) if file.is_file() else (404, {}, b"")

    with start_server(answer) as www:
        done = zarrc(*(word.format(x=f"{www.url}/x.zarr", file=buckets.parent / "a.npy") for word in command.split()), code=None)
    assert done.code == 6 and "stores of kind http cannot write" in done.err and set(sent) <= {"GET", "HEAD", "PROPFIND"}, done.err


def test_concurrent_commands(call, endpoint, buckets):
    """Creations, appends, resizes, attributes and consolidated metadata of one hierarchy at once: none is lost."""
    env, url = make_variables(endpoint), f"s3://{BUCKET}/busy.zarr"
    call("create", f"{url}/rows", "--shape=0,8", "--chunks=3,8", "--shards=9,8", "--dtype=int32", env=env)
    call("consolidate", url, env=env)
    commands = [[("create", f"{url}/n{i}", "--shape=3", "--dtype=int8"), ("attrs", "set", f"{url}/rows", f"k{i}", str(i)),
                 ("append", f"{url}/rows", buckets.parent / "rows.npy"), ("resize", f"{url}/n{i}", str(5 + i)), ("consolidate", url),
                 ("attrs", "set", f"{url}/n{i}", "i", str(i))] for i in range(4)]
    np.save(buckets.parent / "rows.npy", np.ones((4, 8), "int32"))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda row: [call(*command, env=env) for command in row], commands))
    assert call("ls", url, env=env).text.split() == ["n0", "n1", "n2", "n3", "rows"]
    info = call("info", "--json", f"{url}/rows", env=env).json
    assert info["shape"] == [16, 8] and info["attributes"] == {f"k{i}": i for i in range(4)}
    assert call("cat", f"{url}/rows[:,0]", env=env).text.split() == ["1"] * 16
    listed = json.loads((buckets / BUCKET / "busy.zarr/zarr.json").read_text())["consolidated_metadata"]["metadata"]
    assert {name: (node["shape"], node["attributes"]) for name, node in listed.items()} == {
        "rows": ([16, 8], info["attributes"]), **{f"n{i}": ([5 + i], {"i": i}) for i in range(4)}}
    call("rm", "-r", url, env=env)
    call("ls", url, env=env, code=3)


@pytest.mark.parametrize("times", [3, None])
def test_rename_dim_meets_another_writer(call, server, times):
    """Between its read and its write another writer sets an attribute, which stays. A writer that never stops ends the command."""
    env, url, path = make_variables(server.url), f"s3://{BUCKET}/renamed.zarr", server.service.folder / "renamed.zarr/zarr.json"
    call("create", url, "--shape=3", "--dtype=int8", "--dims=x", env=env)
    writes = itertools.count(1)

    def interfere(request):
        if request.method == "PUT" and request.path.endswith("zarr.json") and (n := next(writes)) <= (times or n):
            document = json.loads(path.read_text())
            document["attributes"] = {"n": n}
            path.write_text(json.dumps(document))

    server.service.fault = interfere
    said = call("attrs", "rename-dim", url, "x", "lon", env=env, code=0 if times else 7).err
    server.service.fault = None
    document = json.loads(path.read_text())
    if times:
        assert document["dimension_names"] == ["lon"] and document["attributes"] == {"n": times}
    else:
        assert document["dimension_names"] == ["x"] and "zarr.json" in said
    call("rm", "-r", url, env=env)


@pytest.mark.parametrize("how", ["add", "rank", "rows"])
def test_a_crop_meets_another_writer(call, server, tmp_path, how):
    """Before each of its requests another writer adds an array, or replaces it by one of another shape."""
    env, url, folder = make_variables(server.url), f"s3://{BUCKET}/cut-{how}.zarr", server.service.folder / f"cut-{how}.zarr"
    call("create", f"{url}/a", "--shape=4,4", "--dtype=int8", "--dims=y,x", env=env)
    new = folder / ("b" if how == "add" else "a") / "zarr.json"
    old = (folder / "a/zarr.json").read_text()
    document = json.loads(old)
    if how != "add":
        document.update({"shape": [4] if how == "rank" else [2, 4], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 4][:1 + (how == "rows")]}},
                         "dimension_names": ["y", "x"][:1 + (how == "rows")]})
    said, late = "", False
    for at in itertools.count(1):
        requests = itertools.count(1)

        def interfere(request, at=at, requests=requests):
            if next(requests) == at:
                new.parent.mkdir(exist_ok=True)
                new.write_text(json.dumps(document))

        server.service.fault = interfere
        done = call("reencode", *(["--dtype=int16"] if how == "rows" else []), f"{url}/a" if how == "rows" else f"{url}[y=1:]", tmp_path / f"{at}.zarr", env=env, code=None)
        server.service.fault = None
        late = next(requests) <= at
        assert done.code >= 0 and (done.code == 0 or done.err), "a crash"
        said += done.err
        if how == "add":
            new.unlink(missing_ok=True)
        (folder / "a/zarr.json").write_text(old)
        if late:
            break
    assert ("another writer" in said) == (how != "rows") and at > 3
    call("rm", "-r", url, env=env)


def test_a_shrink_keeps_chunks_of_fill_values(call, endpoint, buckets):
    """Where no condition of a delete is trusted. verify tells what a resize would do, and no old element comes back."""
    env, url, chunks = make_variables(endpoint), f"s3://{BUCKET}/shrunk.zarr", buckets / BUCKET / "shrunk.zarr/c"
    call("import", buckets.parent / "a.npy", url, "--chunks=10,10", env=env)
    call("resize", url, "15,40", env=env)
    assert len([file for file in chunks.rglob("*") if file.is_file()]) == 16
    said = call("verify", url, env=env).text
    assert "8 chunks, this one among them, are outside of the shape; a resize to the same shape gives them the fill value" in said, said
    call("resize", url, "40,40", env=env)
    assert set(call("cat", f"{url}[15:]", env=env).text.split()) == {"0"} and call("cat", f"{url}[14,:2]", env=env).text.split() == ["560", "561"]
    call("rm", "-r", url, env=env)


def test_an_interrupt_ends_a_probe(call, server):
    """After it nothing more is sent, so the probe's key stays, until it is cleaned."""
    env, url, sent, started = make_variables(server.url), f"s3://{BUCKET}/stopped.zarr", [], threading.Event()
    call("create", f"{url}/a", "--shape=40,40", "--chunks=40,41", "--dtype=int32", env=env)

    def fault(request):
        if "probe" in request.path:
            sent.append(request.method)
        if len(sent) == 2 and started.wait(60) and process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait(60)

    server.service.fault = fault
    process = subprocess.Popen([PROGRAM, "import", server.service.folder.parent.parent / "a.npy", f"{url}/a[:,:]"], env={**os.environ, **env})
    started.set()
    assert process.wait(60) not in (0, -signal.SIGKILL)
    assert sent == ["PUT", "PUT"]
    left = list((server.service.folder / "stopped.zarr").glob(".zarrc-probe-*"))
    assert len(left) == 1
    server.service.fault = None
    call("clean", "--age=0", url, env=env)
    assert not left[0].exists()


def test_a_probe_that_may_not_be_erased(call, server):
    """One warning names its key."""
    env, url = make_variables(server.url), f"s3://{BUCKET}/denied.zarr"
    server.service.fault = lambda request: answer_error(403, "AccessDenied") if request.method == "DELETE" else None
    said = call("create", f"{url}/a", "--shape=3", "--dtype=int8", env=env).err
    left, = (server.service.folder / "denied.zarr").glob(".zarrc-probe-*")
    assert said.count(left.name) == said.count("conditional=etag") == 1, said
    server.service.fault = None
    call("rm", "-r", url, env=env)
    left.unlink(missing_ok=True)


def test_errors_of_writes(call, server):
    env, path = make_variables(server.url), server.service.folder / "pre fix/x.zarr/a/zarr.json"
    before = path.read_bytes()
    for answer, texts in ((answer_error(403, "AccessDenied"), ("code AccessDenied, request REQ17",)), (answer_error(404, "NoSuchBucket"), ("there is no such bucket",)),
                          ((404, {}, b""), ("does not say what is missing",)), (answer_error(400, "EntityTooLarge"), ("code EntityTooLarge",))):
        server.service.fault = lambda request, answer=answer: answer if request.method == "PUT" and "zarr.json" in request.path else None
        done = call("attrs", "set", f"{URL}/a", "k", "1", env=env, code=None)
        assert done.code in (3, 6) and all(text in done.err for text in (*texts, "PUT", f"{server.url}/{BUCKET}")), done.err
        server.service.fault = lambda request, answer=answer: answer if request.method == "PUT" and "probe" in request.path else None
        done = call("attrs", "set", f"{URL}/a", "k", "1", env=env, code=None)
        assert "option conditional" in done.err and all(text in done.err for text in texts), done.err
    assert path.read_bytes() == before and not list(server.service.folder.rglob("*probe*"))
    assert "nobucket" in call("create", "s3://nobucket/x.zarr", "--shape=3", "--dtype=int8", env=env, code=None).err


def test_clean_removes_probes_and_keys_of_locks(call, endpoint, buckets, tmp_path):
    env, url, folder = make_variables(endpoint), f"s3://{BUCKET}/probed.zarr", buckets / BUCKET / "probed.zarr"
    call("create", f"{url}/a", "--shape=3", "--dtype=int8", env=env)
    for name in (".zarrc-probe-1", "a/.zarrc-probe-2"):
        (folder / name).write_text("x")
    assert "probe" not in call("ls", "-R", url, env=env).text
    call("cp", url, tmp_path / "copy.zarr", env=env)
    assert not list(tmp_path.rglob("*probe*"))
    (folder / "a/c").mkdir()
    (folder / "a/c/0.__lock").write_text("")
    dry = call("clean", "-n", url, env=env)
    assert dry.text == "" and "and 3 younger" in dry.err
    call("clean", url, env=env)
    assert len(list(folder.rglob(".zarrc-probe-*"))) == 2 and (folder / "a/c/0.__lock").exists()
    assert call("clean", "-n", "--age=0", url, env=env).text.split() == [".zarrc-probe-1", "a/.zarrc-probe-2", "a/c/0.__lock"]
    assert "removed 3 of 3" in call("clean", "--age=0", url, env=env).err
    assert not list(folder.rglob(".zarrc-probe-*")) and not (folder / "a/c/0.__lock").exists() and call("ls", url, env=env).text == "a\n"
    call("rm", "-r", url, env=env)


def test_what_does_not_work(call, server):
    env = make_variables(server.url)
    for url in (f"s3://nobucket/%2F..%2F..%2F{BUCKET}/pre fix/x.zarr", "s3://../bucket/x.zarr", "s3://b/a%2F.%2Fx.zarr"):
        assert "begins with a dot" in call("info", url, env=env, code=2).err
    for url in ("s3://u:p@b/x.zarr", "s3://b:80/x.zarr", "s3://b/x.zarr?versionId=1"):
        assert "s3://BUCKET/PREFIX" in call("info", url, env=env, code=2).err


# ---- what is missing, what is broken ----


def test_only_a_missing_key_is_missing(call, server):
    env = make_variables(server.url)
    assert "no Zarr array or group" in call("info", f"s3://{BUCKET}/none.zarr", env=env, code=3).err
    for fault, text in ((answer_error(404, "NoSuchBucket"), "code NoSuchBucket, request REQ17: there is no such bucket"),
                        (answer_error(404, "NoSuchBucket", details="<Details><Code>NoSuchKey</Code></Details>"), "code NoSuchBucket"),
                        (answer_error(404, "NoSuchUpload"), "code NoSuchUpload"), ((404, {}, b""), "does not say what is missing"),
                        ((404, {}, b"<html><p>nothing</html>"), "does not say what is missing"),
                        (answer_error(403, "AccessDenied"), "anonymous=true"), (answer_error(400, "Odd"), "code Odd")):
        server.service.fault = lambda request, fault=fault: fault if "/c/" in request.path or "none" in request.path else None
        done = call("cat", f"{URL}/a[0,:4]", env=env, code=None)
        assert done.code != 0 and all(part in done.err for part in (text, "GET", f"HTTP {fault[0]}", f"{server.url}/{BUCKET}")), done.err
        assert text in call("info", f"s3://{BUCKET}/none.zarr", env=env, code=None).err
    assert "NoSuchBucket" in call("ls", "s3://misspelt/x.zarr", env=env, code=None).err


def test_wrong_credentials_hide_nothing(call, server, buckets):
    data = buckets / BUCKET / "pre fix/v2.zarr"
    data.mkdir(exist_ok=True)
    (data / ".zgroup").write_text('{"zarr_format": 2}')
    (data / ".zattrs").write_text('{"scale_factor": 2}')
    env, url = make_variables(server.url), f"s3://{BUCKET}/pre fix/v2.zarr"
    assert "2" in call("attrs", "get", url, "scale_factor", env=env).text
    for code in ("ExpiredToken", "SignatureDoesNotMatch", "RequestTimeTooSkewed", "Odd"):
        server.service.fault = lambda request, code=code: answer_error(403, code) if ".zattrs" in request.path else None
        assert f"code {code}" in call("attrs", "get", url, "scale_factor", env=env, code=None).err


def test_a_head_has_no_body(call, server):
    """So a 404 to it is asked again, until the bucket is known to be there."""
    env = make_variables(server.url)
    server.log.clear()
    done = call("info", "s3://misspelt/pre fix/x.zarr.zip", env=env, code=None)
    assert "NoSuchBucket" in done.err


def test_denied_is_missing(call, server):
    server.service.fault = lambda request: answer_error(403, "AccessDenied") if "/c/" in request.path else None
    done = call("cat", f"{URL}/a[0,:4]", "--store-option=denied_is_missing=true", env=make_variables(server.url))
    assert done.text.split() == ["0"] * 4
    server.service.fault = lambda request: answer_error(403, "AccessDenied") if "list-type" in request.path else None
    assert "AccessDenied" in call("ls", "-R", URL, "--store-option=denied_is_missing=true", env=make_variables(server.url), code=None).err


# ---- corrections ----


def test_the_region_is_corrected_once(call, server):
    server.service.region = "eu-west-3"

    def fault(request):
        if "/us-east-1/" in request.headers["Authorization"]:
            return answer_error(status, code, **headers)
        return None

    server.service.fault = fault
    for status, code, headers in ((301, "PermanentRedirect", {"x-amz-bucket-region": "eu-west-3", "Location": "http://127.0.0.1:9/"}),
                                  (301, "PermanentRedirect", {"region": "eu-west-3", "details": "<Endpoint>127.0.0.1:9</Endpoint><Bucket>other</Bucket>"}),
                                  (400, "AuthorizationHeaderMalformed", {"x-amz-bucket-region": "eu-west-3"}),
                                  (400, "AuthorizationHeaderMalformed", {"region": "eu-west-3"})):
        assert call("cat", f"{URL}/a[0,:4]", env=make_variables(server.url)).text.split() == ["0", "1", "2", "3"]
    status, code, headers = 301, "PermanentRedirect", {"x-amz-bucket-region": "evil.example.com/", "Location": "http://127.0.0.1:9/"}
    assert "PermanentRedirect" in call("info", f"{URL}/a", env=make_variables(server.url), code=None).err
    regions = itertools.cycle(["eu-west-1", "eu-west-2"])
    server.service.fault = lambda request: answer_error(301, "PermanentRedirect", region=next(regions))
    server.log.clear()
    assert "PermanentRedirect" in call("info", f"{URL}/a", env=make_variables(server.url), code=None).err
    assert max(collections.Counter(server.log).values()) <= 4  # one correction, and one once more for the text


def test_the_clock_is_corrected_once(call, server):
    def fault(request):
        sent = datetime.datetime.strptime(request.headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
        if abs(sent.timestamp() - time.time() - ahead) > 900:
            return answer_error(403, "RequestTimeTooSkewed", Date=email.utils.formatdate(time.time() + told, usegmt=True))
        return None

    server.service.fault = fault
    ahead = told = 7200
    assert call("cat", f"{URL}/a[0,:2]", env=make_variables(server.url)).text.split() == ["0", "1"]
    told = 90000
    server.log.clear()
    assert "clock" in call("cat", f"{URL}/a[0,:2]", env=make_variables(server.url), code=None).err
    assert max(collections.Counter(server.log).values()) <= 8  # two calls of a key, each sent four times at most


# ---- hostile listings ----


def test_listings_that_are_wrong(call, server):
    page = {"pre fix/x.zarr/a/zarr.json": 3}
    for answer, text in ((answer_list(page, "", token="same"), "repeats the token"), (answer_list({"other/zarr.json": 1}, ""), "outside of the prefix"),
                         ((200, {}, b"<!DOCTYPE x><ListBucketResult/>"), "document type"), ((200, {}, b"<Odd/>"), "no ListBucketResult"),
                         ((200, {}, b"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"), "without the token"),
                         ((200, {}, b"<ListBucketResult/>"), "whether it is all"),
                         ((200, {}, b"<ListBucketResult><IsTruncated>True</IsTruncated></ListBucketResult>"), "wrong IsTruncated"),
                         ((200, {}, b"<ListBucketResult><IsTruncated>false</IsTruncated><IsTruncated>false</IsTruncated></ListBucketResult>"), "wrong IsTruncated"),
                         (answer_list({"pre fix/x.zarr/%zz": 1}, "").__class__((200, {}, b"<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>false</IsTruncated><Contents>"
                          b"<Key>pre%20fix/x.zarr/%zz</Key><Size>1</Size></Contents></ListBucketResult>")), "malformed escape")):
        server.service.fault = lambda request, answer=answer: answer if "list-type" in request.path else None
        done = call("ls", "-R", URL, env=make_variables(server.url), code=None)
        assert done.code != 0 and text in done.err, done.err


def test_tokens_that_go_in_a_circle(call, server):
    def fault(request):
        if "list-type" in request.path:
            token = request.path.rpartition("=")[2]
            return answer_list({}, "", token={"a": "b", "b": "c", "c": "a"}.get(token, "a"))
        return None

    server.service.fault = fault
    assert "repeats the token" in call("ls", "-R", URL, env=make_variables(server.url), code=None).err
    assert len(server.log) < 20


def test_markers_of_folders_are_skipped(call, server):
    keys = {"pre fix/x.zarr/": 0, "pre fix/x.zarr/in/": 0, "pre fix/x.zarr/b//c": 1, "pre fix/x.zarr/zarr.json": 5}
    server.service.fault = lambda request: answer_list(keys, "", ["pre fix/x.zarr/a/"]) if "list-type" in request.path else None
    assert call("ls", URL, env=make_variables(server.url)).text.split() == ["a"]


# ---- credentials ----


def test_anonymous(call, server):
    server.service.is_anonymous = True
    env = {"AWS_ENDPOINT_URL": server.url, **s3_server.WITHOUT}
    assert call("cat", f"{URL}/a[0,:2]", "--store-option=anonymous=true", env=env).text.split() == ["0", "1"]
    done = call("info", f"{URL}/a", env=env, code=None)
    for text in ("no credentials were found", "AWS_ACCESS_KEY_ID", "profile default of /nonexistent", "AWS_EC2_METADATA_DISABLED", "anonymous=true"):
        assert text in done.err, done.err


def test_options(call, server, tmp_path):
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    words = [f"--store-option={text}" for text in (f"access_key_id={ID}", f"secret_access_key=@{tmp_path}/secret", f"endpoint={server.url}",
                                                  "style=path", "requester_pays=true", "region=us-east-1")]
    seen = []
    server.service.fault = lambda request: seen.append(request.headers.get("x-amz-request-payer"))
    assert call("cat", f"{URL}/a[0,:2]", *words, env=s3_server.WITHOUT).text.split() == ["0", "1"]
    assert set(seen) == {"requester"}
    seen.clear()
    server.service.fault = lambda request: seen.append((request.headers.get_all("X-Amz-Odd"), request.headers.get("X-Plain")))
    more = '--store-option=headers={"X-Amz-Odd": "1  2", "X-Plain": "p"}'  # the server wants all x-amz-* signed
    assert call("cat", f"{URL}/a[0,:2]", *words, more, env=s3_server.WITHOUT).text.split() == ["0", "1"]
    assert set((tuple(odd), plain) for odd, plain in seen) == {(("1 2",), "p")}
    for name in ("Authorization", "Host", "If-Match", "If-None-Match", "X-Amz-Date", "x-amz-content-sha256", "x-amz-security-token"):
        done = call("info", f"{URL}/a", *words, f'--store-option=headers={{"{name}": "x"}}', env=s3_server.WITHOUT, code=2)
        assert name.lower() in done.err.lower() and "headers" in done.err
    for text in ("anonymous=true", "profile=x", "bearer_token=x", "user=x", "netrc=true", f"netrc_file={tmp_path}/secret", "style=virtual"):
        name, url = text.partition("=")[0], URL.replace("bucket", "MyBucket") if "style" in text else URL
        assert name in call("info", f"{url}/a", *(w for w in words if "style" not in w), f"--store-option={text}", env=s3_server.WITHOUT, code=2).err
    for option in ("conditional=odd", "style=odd", "endpoint=ftp://x", "endpoint=http://u:p@x", "region=a/b", "nothing=1", "anonymous=maybe"):
        assert option.partition("=")[0] in call("info", f"{URL}/a", *words, f"--store-option={option}", env=s3_server.WITHOUT, code=2).err


def test_profiles_and_processes(call, server, tmp_path):
    (tmp_path / "credentials").write_text(f"[fixed]\naws_access_key_id={ID}\naws_secret_access_key={SECRET}\n")
    output = json.dumps({"Version": 1, "AccessKeyId": ID, "SecretAccessKey": SECRET, "SessionToken": "tok", "Expiration": "2099-01-01T00:00:00Z"})
    (tmp_path / "output").write_text(output)
    (tmp_path / "config").write_text(f"[profile run]\ncredential_process = cat '{tmp_path}/output'\n"
                                     "[profile fails]\ncredential_process = echo SECRET >&2; exit 3\n")
    env = {"AWS_CONFIG_FILE": f"{tmp_path}/config", "AWS_SHARED_CREDENTIALS_FILE": f"{tmp_path}/credentials", "AWS_ENDPOINT_URL": server.url,
           "AWS_EC2_METADATA_DISABLED": "true"}
    for profile in ("fixed", "run"):
        for more in (["--store-option", f"profile={profile}"], []):
            assert call("cat", f"{URL}/a[0,:2]", *more, env={**env, "AWS_PROFILE": profile}).text.split() == ["0", "1"]
    assert "credential_process failed" in call("info", f"{URL}/a", env={**env, "AWS_PROFILE": "fails"}, code=None).err
    assert "untrusted" in call("info", f"{URL}/a", "--untrusted", env={**env, "AWS_PROFILE": "run"}, code=None).err
    assert "no profile nothing" in call("info", f"{URL}/a", env={**env, "AWS_PROFILE": "nothing"}, code=2).err
    (tmp_path / "output").write_text("no JSON")
    done = call("info", f"{URL}/a", env={**env, "AWS_PROFILE": "run"}, code=None)
    assert "new credentials: the credentials are no JSON" in done.err and "corrupt" not in done.err, done.err
    assert "no profile nothing" in call("info", f"{URL}/a", "--store-option=profile=nothing", env=env, code=2).err


def temporary(seconds):
    end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return {"AccessKeyId": "ASIATEMP", "SecretAccessKey": SECRET, "Token": "tok", "Expiration": end.strftime("%Y-%m-%dT%H:%M:%SZ")}


def test_metadata_servers(call, server):
    server.service.secrets = {"ASIATEMP": SECRET}
    asked = []

    def answer(request):
        asked.append(f"{request.method} {request.path}")
        if request.path == "/container":
            return (200, {}, json.dumps(temporary(3600)).encode()) if request.headers.get("Authorization") == "Bearer x" else (403, {}, b"")
        if request.method == "PUT" and request.path == "/latest/api/token" and request.headers["X-aws-ec2-metadata-token-ttl-seconds"] == "21600":
            return 200, {}, b"session"
        if request.headers.get("X-aws-ec2-metadata-token") != "session":
            return 401, {}, b""
        role = "/latest/meta-data/iam/security-credentials/"
        return (200, {}, b"the-role") if request.path == role else (200, {}, json.dumps(temporary(3600)).encode())

    with start_server(answer) as metadata:
        env = {"AWS_ENDPOINT_URL": server.url, "AWS_CONFIG_FILE": "/nonexistent", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
               "AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata.url, "http_proxy": "http://127.0.0.1:9", "no_proxy": "127.0.0.1"}
        assert call("cat", f"{URL}/a[0,:2]", env=env).text.split() == ["0", "1"]
        assert [row.rpartition("/")[2] for row in asked] == ["token", "", "the-role"]
        asked.clear()
        assert "untrusted" in call("info", f"{URL}/a", "--untrusted", env=env, code=None).err and not asked
        env |= {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{metadata.url}/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "Bearer x"}
        assert call("cat", f"{URL}/a[0,:2]", env=env).text.split() == ["0", "1"]
        assert asked == ["GET /container"]
        assert "403" in call("info", f"{URL}/a", env={**env, "AWS_CONTAINER_AUTHORIZATION_TOKEN": "no"}, code=None).err
        done = call("info", f"{URL}/a", env={**env, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "/nonexistent"}, code=None)
        assert "new credentials: cannot read /nonexistent" in done.err, done.err
        shown = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{metadata.url.replace('//', f'//u:{SECRET}@')}/none?x={SECRET}", "ZARRC_LOG_LEVEL": "trace"}
        assert "/none" in call("info", f"{URL}/a", env={**env, **shown}, code=None).err
        shown["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://127.example.invalid/container"
        assert "not of this machine" in call("info", f"{URL}/a", env={**env, **shown}, code=None).err


def test_how_a_metadata_server_is_asked(call, server):
    """Twice, without a proxy, and no redirect is followed."""
    env = {"AWS_ENDPOINT_URL": server.url, "AWS_CONFIG_FILE": "/nonexistent", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent", "http_proxy": server.url}
    for answer in ((302, {"Location": "/elsewhere"}, b""), (500, {"Retry-After": "0"}, b"")):
        with start_server(lambda request, answer=answer: answer) as metadata:
            done = call("info", f"{URL}/a", env={**env, "AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata.url}, code=None)
            assert "new credentials" in done.err and set(metadata.log) == {f"PUT /latest/api/token {answer[0]}"}, (metadata.log, done.err)
            assert len(metadata.log) == 2 or answer[0] == 302
            metadata.log.clear()
            done = call("info", f"{URL}/a", env={**env, "AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata.url, "AWS_EC2_METADATA_DISABLED": "true"}, code=None)
            assert "no credentials were found" in done.err and not metadata.log
    server.log.clear()
    done = call("info", f"{URL}/a", env={**env, "AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://192.0.2.1"}, code=None)  # an address of no host
    assert "no credentials were found" in done.err and not server.log, done.err


def test_a_metadata_server_that_is_silent(call, server):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        env = {"AWS_ENDPOINT_URL": server.url, "AWS_CONFIG_FILE": "/nonexistent", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
               "AWS_EC2_METADATA_SERVICE_ENDPOINT": f"http://127.0.0.1:{silent.getsockname()[1]}/"}
        begin = time.monotonic()
        assert "no credentials were found" in call("info", f"{URL}/a", env=env, code=None).err
        assert time.monotonic() - begin < 30


def test_sts(call, server, tmp_path):
    server.service.secrets = {"ASIATEMP": SECRET}
    forms, wrong = [], []

    def answer(request):
        assert "Authorization" not in request.headers or "AWS4" in request.headers["Authorization"]
        forms.append(request.body.decode())
        if "RoleArn=denied" in forms[-1]:
            return 403, {}, (b'<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>AccessDenied</Code>'
                             b'</Error><RequestId>REQ18</RequestId></ErrorResponse>')
        if "WithWebIdentity" not in forms[-1]:
            wrong.append(s3_server.check_signature(request, {ID: SECRET}, "eu-west-1", "sts"))
        key = temporary(3600)
        return 200, {"Content-Type": "text/xml"}, (
            '<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>'
            f'<AccessKeyId>{key["AccessKeyId"]}</AccessKeyId><SecretAccessKey>{SECRET}</SecretAccessKey><SessionToken>tok</SessionToken>'
            f'<Expiration>{key["Expiration"]}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>').encode()

    (tmp_path / "credentials").write_text(f"[base]\naws_access_key_id={ID}\naws_secret_access_key={SECRET}\n")
    (tmp_path / "config").write_text("[profile role]\nrole_arn=arn:aws:iam::1:role/r\nsource_profile=base\nexternal_id=e x\nregion=eu-west-1\n")
    (tmp_path / "token").write_text("web+token\n")
    server.service.region = "eu-west-1"
    with start_server(answer) as sts:
        env = {"AWS_ENDPOINT_URL": server.url, "AWS_ENDPOINT_URL_STS": sts.url, "AWS_CONFIG_FILE": f"{tmp_path}/config",
               "AWS_SHARED_CREDENTIALS_FILE": f"{tmp_path}/credentials", "AWS_EC2_METADATA_DISABLED": "true"}
        assert call("cat", f"{URL}/a[0,:2]", env={**env, "AWS_PROFILE": "role"}).text.split() == ["0", "1"]
        assert wrong == [None] and "RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&" in forms[0] and forms[0].endswith("ExternalId=e%20x")
        web = {"AWS_WEB_IDENTITY_TOKEN_FILE": f"{tmp_path}/token", "AWS_ROLE_ARN": "r", "AWS_REGION": "eu-west-1"}
        assert call("cat", f"{URL}/a[0,:2]", env={**env, **web}).text.split() == ["0", "1"]
        assert forms[-1].endswith("WebIdentityToken=web%2Btoken")
        done = call("info", f"{URL}/a", env={**env, **web, "AWS_ROLE_ARN": "denied"}, code=None)
        assert "code AccessDenied, request REQ18" in done.err, done.err
        done = call("info", f"{URL}/a", env={**env, **web, "AWS_WEB_IDENTITY_TOKEN_FILE": f"{tmp_path}/none"}, code=None)
        assert "new credentials: cannot read" in done.err, done.err
        done = call("info", f"{URL}/a", env={**env, **web, "AWS_ENDPOINT_URL_STS": "http://sts.example.invalid/"}, code=None)
        assert "neither https nor this machine" in done.err, done.err


def test_secrets_are_not_shown(call, server, tmp_path):
    env = make_variables(server.url, AWS_SESSION_TOKEN=f"{SECRET}token", ZARRC_LOG_LEVEL="trace")
    for command in ("info", "ls", "verify", "info --json --stats"):
        call(*command.split(), URL, env=env)
    for fault in (answer_error(403, "AccessDenied"), (500, {}, SECRET.encode()), (200, {}, SECRET.encode()), answer_error(400, SECRET + "\x01")):
        server.service.fault = lambda request, fault=fault: fault
        call("info", URL, "--store-option=tries=1", env=env, code=None)
    call("info", URL, "--store-option", f"secret_access_key={SECRET}", env=env, code=2)
    call("info", URL, "--store-option", f"nothing={SECRET}", env=env, code=2)


def test_a_session_token_needs_tls(call, server):
    for host in ("example.invalid", "127.example.invalid", "128.0.0.1"):
        env = make_variables(f"http://{host}", AWS_SESSION_TOKEN="tok")
        assert "allow_http" in call("info", URL, env=env, code=None).err
    env = make_variables("http://example.invalid", AWS_SESSION_TOKEN="tok")
    assert "allow_http" in call("info", "s3://127.x/a.zarr", "--store-option=style=virtual", env=env, code=None).err
    env = make_variables(server.url, AWS_SESSION_TOKEN="tok", http_proxy="http://127.0.0.1:9")
    assert call("cat", f"{URL}/a[0,:2]", env=env).text.split() == ["0", "1"]
    tokens = set()

    def fault(request):  # the server is a proxy for the host
        request.path = request.path.removeprefix("http://example.invalid")
        tokens.add(request.headers.get("x-amz-security-token"))

    server.service.fault = fault
    env = make_variables("http://example.invalid", AWS_SESSION_TOKEN="tok", http_proxy=server.url)
    assert call("cat", f"{URL}/a[0,:2]", "--store-option=allow_http=true", env=env).text.split() == ["0", "1"] and tokens == {"tok"}
