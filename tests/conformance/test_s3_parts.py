"""Values in parts on S3, by the operations of a store: conditions, completions that are repeated or lost, other processes."""
import ctypes
import mmap
import os
import zipfile
from ctypes import byref, c_uint64, c_void_p
from xml.sax.saxutils import escape

import pytest
from http_answers import HANGS, LOST
from s3_large import answer_xml, start_large_service
from s3_server import BUCKET, answer_error, find_versitygw, make_variables, start_versitygw
from zarrc_abi import Error, Mem, StoreOp, lib
from zarrc_ctypes import Context

STAT, PUT, ERASE, PUT_PART = 1, 2, 3, 6
IF_VERSION, WANT_VERSION, IN_PARTS = 1, 4, 32
OK = 0
PART = 8 << 20
KEY = b"a/c/0"


class Op(StoreOp):
    _fields_ = [("source", c_void_p), ("parts", c_void_p), ("part", c_uint64)]


def name_status(status):
    return lib.zarr_status_text(status).decode()


@pytest.fixture
def server(tmp_path):
    (tmp_path / BUCKET).mkdir()
    with start_large_service(tmp_path / BUCKET) as found:
        found.bucket = tmp_path / BUCKET
        yield found


@pytest.fixture
def store(server, monkeypatch, request):
    """With a parameter: of this configuration."""
    for name, value in make_variables(server.url).items():
        monkeypatch.setenv(name, value)
    context = Context(fake=None)
    try:
        found = context.store(f"s3://{BUCKET}/pre", config=getattr(request, "param", None))
    except Exception as problem:  # noqa: BLE001 - libraries are missing
        pytest.skip(str(problem))
    yield found
    found.close()


def run(store, op):
    """The status and the text of an operation."""
    error = Error()
    lib.zarr_store_run(c_void_p(store.pointer), byref(op), byref(error))
    return op.status, error.message.decode(errors="replace")


def begin(store, key=KEY):
    parts, error = c_void_p(), Error()
    assert lib.zarr_store_begin_parts(byref(parts), c_void_p(store.pointer), key, None, None, byref(error)) == OK, error.message
    return parts.value


def end(store, parts, key=KEY):
    lib.zarr_store_end_parts(c_void_p(store.pointer), key, c_void_p(parts))


def flush(store):
    """The text of a failure, or ""."""
    error = Error()
    return error.message.decode() if lib.zarr_store_flush(c_void_p(store.pointer), None, byref(error)) != OK else ""


def put(verb, data, key=KEY, **members):
    op = Op(verb=verb, key=key, length=len(data), **members)
    op.mem = Mem()
    op.data = ctypes.create_string_buffer(data, max(len(data), 1))
    op.mem.device_type, op.mem.handle, op.mem.bytes = 1, ctypes.addressof(op.data), len(data)
    return op


def put_part(store, parts, number, data, at=None, key=KEY):
    return run(store, put(PUT_PART, data, key, parts=parts, part=number, offset=(number - 1) * PART if at is None else at))


def commit(store, parts, length, flags=0, version=None, key=KEY):
    op = Op(verb=PUT, key=key, length=length, parts=parts, flags=IN_PARTS | flags)
    if version is not None:
        op.flags |= IF_VERSION
        op.version = version
    return (*run(store, op), op.version)


def none():
    return type(StoreOp().version)()


DATA = bytes(range(256)) * 4096


def two_parts(store, parts):
    assert put_part(store, parts, 2, DATA)[0] == OK  # in any order
    assert put_part(store, parts, 1, b"x" * PART)[0] == OK
    assert put_part(store, parts, 1, b"y" * PART)[0] == OK  # replaces the first one


def test_parts(store, server):
    parts = begin(store)
    two_parts(store, parts)
    file = server.bucket / "pre/a/c/0"
    assert not file.exists()
    status, text, version = commit(store, parts, PART + len(DATA), WANT_VERSION)
    assert status == OK and file.read_bytes() == b"y" * PART + DATA, text
    again = commit(store, parts, PART + len(DATA), WANT_VERSION, none())  # reports the first success, whatever the condition is
    assert again[0] == OK and bytes(again[2].bytes) == bytes(version.bytes) != bytes(64)
    end(store, parts)
    assert server.service.count("AbortUpload") == 0 and server.service.count("CompleteUpload") == 1
    parts = begin(store)
    two_parts(store, parts)
    assert name_status(commit(store, parts, PART + len(DATA), WANT_VERSION, version)[0]) == "ok"
    end(store, parts)


def test_parts_that_do_not_make_the_value(store, server):
    parts = begin(store)
    assert name_status(commit(store, parts, 0)[0]) == "invalid"
    assert put_part(store, parts, 1, b"x" * PART)[0] == OK and put_part(store, parts, 3, DATA)[0] == OK
    for length in (PART + len(DATA), PART, 2 * PART + len(DATA)):
        assert name_status(commit(store, parts, length)[0]) == "invalid"
    assert name_status(put_part(store, parts, 4, b"", key=b"a/c/1")[0]) == "invalid"
    assert name_status(put_part(store, parts, 10001, b"z")[0]) == "limit"
    end(store, parts)
    assert server.service.count("CompleteUpload") == 0 and server.service.open_uploads() == []


def test_conditions(store, server):
    file = server.bucket / "pre/a/c/0"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"old")
    parts = begin(store)
    two_parts(store, parts)
    status, text, _ = commit(store, parts, PART + len(DATA), 0, none())
    assert name_status(status) == "conflict" and file.read_bytes() == b"old", text
    assert not [name for name in os.listdir(server.bucket / "pre") if "probe" in name]
    file.unlink()
    assert commit(store, parts, PART + len(DATA), 0, none())[0] == OK and file.stat().st_size == PART + len(DATA)
    end(store, parts)
    assert server.service.open_uploads() == []


@pytest.mark.parametrize("store", [None, b'{"conditional":"etag"}'], indirect=True, ids=["probe", "etag"])
def test_a_server_without_conditions_of_completions(store, server):
    server.service.conditional = False
    parts = begin(store)
    two_parts(store, parts)
    status, text, _ = commit(store, parts, PART + len(DATA), 0, none())
    assert name_status(status) == "unsupported" and "--mem" in text and not (server.bucket / "pre/a/c/0").exists()
    n = server.service.count("CompleteUpload")
    assert name_status(commit(store, parts, PART + len(DATA), 0, none())[0]) == "unsupported"
    assert server.service.count("CompleteUpload") == n  # it asks once
    end(store, parts)
    assert server.service.open_uploads() == [] and not list(server.bucket.rglob("*probe*"))
    large = put(PUT, b"l" * (65 << 20), flags=IF_VERSION)
    assert run(store, large)[0] == OK  # in one PUT, which has a condition
    assert (server.bucket / "pre/a/c/0").stat().st_size == 65 << 20 and server.service.count("CompleteUpload") == n
    assert name_status(run(store, large)[0]) == "conflict"


def test_a_value_that_no_request_holds(store, server):
    """Without conditions of completions, one of more than 5 GiB is refused before any byte is sent."""
    server.service.conditional = False
    libc, n = ctypes.CDLL(None, use_errno=True), (5 << 30) + 1
    libc.mmap.restype, libc.mmap.argtypes = c_void_p, [c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    no_reserve = 0x4000  # MAP_NORESERVE, which the module mmap of Debian's Python lacks
    at = libc.mmap(None, n, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve, -1, 0)
    assert at != c_void_p(-1).value, ctypes.get_errno()
    op = Op(verb=PUT, key=KEY, length=n, flags=IF_VERSION, mem=Mem(device_type=1, handle=at, bytes=n))
    status, text = run(store, op)
    libc.munmap(c_void_p(at), ctypes.c_size_t(n))
    assert name_status(status) == "unsupported" and "5 GiB" in text
    assert server.service.open_uploads() == [] and not (server.bucket / "pre/a/c/0").exists()
    assert not [row for row in server.log if "a/c/0" in row]


def test_an_erase_of_nothing(store, server):
    """Under the condition that the key is missing it does nothing."""
    file = server.bucket / "pre/a/c/0"
    assert name_status(run(store, Op(verb=ERASE, key=KEY, flags=IF_VERSION))[0]) == "not found"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"old")
    assert name_status(run(store, Op(verb=ERASE, key=KEY, flags=IF_VERSION))[0]) == "conflict"
    assert file.read_bytes() == b"old" and not [row for row in server.log if row.startswith("DELETE")]


def test_a_large_value_with_a_condition(store, server):
    large = put(PUT, b"l" * (65 << 20), flags=IF_VERSION | WANT_VERSION)
    assert run(store, large)[0] == OK
    server.service.names.clear()
    assert run(store, large)[0] == OK  # the version that it got
    assert server.service.count("UploadPart") == 9 and server.service.count("PutObject") == 0
    stale = put(PUT, b"m" * (65 << 20), flags=IF_VERSION)
    assert name_status(run(store, stale)[0]) == "conflict" and server.service.open_uploads() == []


@pytest.mark.parametrize("is_done", [True, False])
def test_a_commit_that_is_repeated(store, server, is_done):
    """The answer to the first one is lost, and so is the HEAD that would tell its outcome."""
    parts = begin(store)
    two_parts(store, parts)

    def hook(name, _request, *answer):
        if name == "HeadObject":
            return answer_error(400, "Odd")
        return answer_xml("<Error><Code>InternalError</Code></Error>") if name == "CompleteUpload" and bool(answer) == is_done else None

    if is_done:
        server.service.after = hook
    else:
        server.service.before = hook
    status, text, _ = commit(store, parts, PART + len(DATA))
    assert name_status(status) == "io" and "unknown" in text
    server.service.after = server.service.before = lambda *_: None
    status, text, version = commit(store, parts, PART + len(DATA), WANT_VERSION)
    assert status == OK and bytes(version.bytes) != bytes(64), text
    end(store, parts)
    assert (server.bucket / "pre/a/c/0").read_bytes() == b"y" * PART + DATA


def test_parts_that_the_service_has_lost(store, server):
    parts = begin(store)
    two_parts(store, parts)
    for upload in server.service.uploads.values():
        upload["is_open"] = False
    assert name_status(put_part(store, parts, 3, b"z")[0]) == "conflict"
    status, text, _ = commit(store, parts, PART + len(DATA))
    assert name_status(status) == "conflict" and "lost the parts" in text
    end(store, parts)


def test_parts_of_a_parent_process(store, server):
    """A forked child neither writes them, nor aborts their upload."""
    parts = begin(store)
    two_parts(store, parts)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            found = [name_status(put_part(store, parts, 3, b"z")[0]), name_status(commit(store, parts, PART + len(DATA))[0])]
            end(store, parts)
            code = 0 if found == ["invalid"] * 2 else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert server.service.count("AbortUpload") == 0
    assert commit(store, parts, PART + len(DATA))[0] == OK
    end(store, parts)


def test_a_lost_answer_to_an_abort(store, server):
    server.service.before = lambda name, _: (LOST, {}, b"") if name == "AbortUpload" else None
    end(store, begin(store))
    assert server.service.count("AbortUpload") >= 1 and len(server.service.open_uploads()) == 1
    server.service.before = lambda *_: None
    assert store.clean() == 1 and server.service.open_uploads() == []


def test_a_hanging_abort_is_not_waited_for(store, server):
    server.service.before = lambda name, _: (HANGS, {}, b"") if name == "AbortUpload" else None
    end(store, begin(store))
    assert server.service.count("AbortUpload") == 1 and len(server.service.open_uploads()) == 1


@pytest.mark.parametrize("store", [b'{"stall_s":3600}'], indirect=True, ids=["stall"])
def test_a_hanging_abort_of_a_large_value_is_not_waited_for(store, server):
    server.service.before = lambda name, _: {"UploadPart": answer_error(403, "AccessDenied"), "AbortUpload": (HANGS, {}, b"")}.get(name)
    status, text = run(store, put(PUT, b"l" * (65 << 20)))
    assert name_status(status) == "denied" and "AccessDenied" in text
    assert server.service.count("AbortUpload") == 1 and len(server.service.open_uploads()) == 1


@pytest.mark.parametrize("etag,told", [('"' + "e" * 90 + '"', '"' + "e" * 90 + '"'), ('"' + "e" * 90 + '"', "e" * 90)], ids=["quoted", "bare"])
def test_a_long_etag_makes_the_same_version_everywhere(store, server, etag, told):
    def after(name, _, answer):
        if name == "CompleteUpload":
            return answer_xml(f"<CompleteMultipartUploadResult><ETag>{escape(told)}</ETag></CompleteMultipartUploadResult>")
        return (answer[0], {**answer[1], "ETag": etag}, answer[2]) if name == "HeadObject" else None

    server.service.after = after
    parts = begin(store)
    two_parts(store, parts)
    status, text, version = commit(store, parts, PART + len(DATA), WANT_VERSION)
    end(store, parts)
    stat = Op(verb=STAT, key=KEY, flags=WANT_VERSION)
    assert (status, run(store, stat)[0]) == (OK, OK), text
    assert bytes(version.bytes) == bytes(stat.version.bytes) != bytes(64)


@pytest.mark.parametrize("then", ["same", "more", "other", "outage"])
def test_an_archive_after_a_put_of_unknown_outcome(store, server, then):
    """The next flush finds its own value, which is no conflict; a value of another program is one."""
    def after(name, request, _):
        if "new.zip" not in request.path:
            return None
        return (LOST, {}, b"") if name == "PutObject" else answer_error(400, "Odd") if name == "HeadObject" else None

    file = server.bucket / "new.zip"
    with store.context.store(f"s3://{BUCKET}/new.zip", create=True, config=b'{"tries":1}') as archive:
        assert run(archive, put(PUT, b"one", b"a"))[0] == OK
        server.service.after = after
        assert "unknown whether" in flush(archive)
        server.service.after = lambda *_: None
        if then == "more":
            assert run(archive, put(PUT, b"two", b"b"))[0] == OK
        if then == "other":
            file.write_bytes(file.read_bytes()[:-1] + b"x")
        if then == "outage":  # the value cannot be compared yet, so nothing is given up
            server.service.before = lambda name, _: answer_error(400, "Odd") if name in ("HeadObject", "GetObject") else None
            text = flush(archive)
            assert text and "changed the archive" not in text
            server.service.before = lambda *_: None
        text = flush(archive)
    if then == "other":
        assert "changed the archive" in text
        return
    assert not text
    with zipfile.ZipFile(file) as found:
        assert {name: found.read(name) for name in found.namelist()} == {"a": b"one", **({"b": b"two"} if then == "more" else {})}


def test_a_key_of_the_library_is_refused(store, server):
    key = b".zarrc-probe-0"
    error, parts = Error(), c_void_p()
    assert lib.zarr_store_begin_parts(byref(parts), c_void_p(store.pointer), key, None, None, byref(error)) != OK and b"reserved" in error.message
    assert "reserved" in run(store, put(PUT, b"l" * (65 << 20), key))[1]
    assert "reserved" in run(store, put(PUT, b"l", key))[1]
    assert server.service.names == []


def test_versitygw(tmp_path, monkeypatch):
    """Another server keeps the conditions of completions, as the probe finds."""
    program, why = find_versitygw()
    if not program:
        pytest.skip(why)
    (tmp_path / "buckets" / BUCKET).mkdir(parents=True)
    with start_versitygw(tmp_path / "buckets") as endpoint:
        for name, value in make_variables(endpoint).items():
            monkeypatch.setenv(name, value)
        with Context(fake=None).store(f"s3://{BUCKET}/pre") as store:
            versions = []
            for expected, wanted in ((none(), "ok"), (none(), "conflict"), (None, "ok")):
                parts = begin(store)
                two_parts(store, parts)
                version = versions[0] if expected is None else expected
                status, text, version = commit(store, parts, PART + len(DATA), WANT_VERSION, version)
                assert name_status(status) == wanted, text
                versions.append(version)
                end(store, parts)
            assert (tmp_path / "buckets" / BUCKET / "pre/a/c/0").read_bytes() == b"y" * PART + DATA
            assert store.clean() == 0
