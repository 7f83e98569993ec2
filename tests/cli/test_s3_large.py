"""Values that go up in parts, copies that the service makes, and many keys that are erased at once; answers that are lost, late or strange."""
import os
import shutil
import signal
import subprocess
import threading
import time
import urllib.parse
import zipfile

import numpy as np
import pytest
from conftest import PROGRAM, peak
from http_answers import HANGS, LOST, answer_range
from s3_large import answer_xml, read_xml, start_large_service
from scripted_server import run_server
from s3_server import BUCKET, ID, SECRET, answer_error, answer_list, find_versitygw, make_variables, start_versitygw
from test_s3_command import skip_without_libraries

MIB = 1 << 20


def make_array(path, shape, dtype="uint8"):
    data = np.arange(np.prod(shape), dtype="uint32").astype(dtype).reshape(shape)
    np.save(path, data)
    return data


@pytest.fixture(scope="module", autouse=True)
def libraries(zarrc):
    skip_without_libraries(zarrc)


@pytest.fixture
def server(tmp_path):
    (tmp_path / BUCKET).mkdir()
    with start_large_service(tmp_path / BUCKET) as found:
        found.bucket = tmp_path / BUCKET
        yield found


@pytest.fixture
def call(zarrc, server):
    def run(*words, code=0, **more):
        done = zarrc(*words, code=code, env=make_variables(server.url, **more))
        assert SECRET.encode() not in done.out and SECRET not in done.err and ID not in done.err
        return done
    return run


@pytest.fixture(scope="module")
def large(tmp_path_factory, zarrc):
    """Two arrays whose only chunk has 70 MiB, and the data."""
    folder = tmp_path_factory.mktemp("large")
    data = make_array(folder / "a.npy", (70, MIB))
    zarrc("import", folder / "a.npy", folder / "a.zarr", f"--chunks=70,{MIB}", "--codec=none")
    return folder, data


@pytest.fixture
def array_file(zarrc, tmp_path):
    make_array(tmp_path / "small.npy", (40, 40), "int32")
    zarrc("import", tmp_path / "small.npy", tmp_path / "small.zarr", "--chunks=10,10")
    return tmp_path / "small.npy"


URL, OTHER = f"s3://{BUCKET}/x.zarr", f"s3://{BUCKET}/in/y z+.zarr"


def upload(call, large, *options, code=0):
    return call("import", large[0] / "a.npy", URL, f"--chunks=70,{MIB}", "--codec=none", *options, code=code)


# ---- uploads ----


def test_a_large_value_goes_up_in_parts(call, server, large):
    upload(call, large)
    names = server.service.names
    assert (names.count("CreateUpload"), names.count("UploadPart"), names.count("CompleteUpload")) == (1, 9, 1), names
    assert (server.bucket / "x.zarr/c/0/0").stat().st_size == 70 * MIB
    assert call("diff", large[0] / "a.zarr", URL).code == 0
    assert server.service.open_uploads() == []


def test_parts_are_on_their_way_together(call, server, large):
    """Each waits until the others have come."""
    all_of_them = threading.Barrier(9)
    server.gate = lambda request: all_of_them.wait(60) if "partNumber" in request.path else None
    upload(call, large)
    assert call("diff", large[0] / "a.zarr", URL).code == 0


def test_checksums_of_parts(call, server, large, array_file):
    """The upload names their algorithm, and its completion lists them."""
    option = "--store-option=checksums=true"
    upload(call, large, option)
    found, = server.service.uploads.values()
    assert len(found["checksums"]) == 9 and call("diff", large[0] / "a.zarr", URL).code == 0
    call("cp", URL, OTHER, option)
    assert server.service.count("CopyObject") > 0 and call("diff", URL, OTHER).code == 0


def test_versitygw(zarrc, large, array_file, tmp_path):
    """Another server takes the same requests."""
    if not find_versitygw()[0]:
        pytest.skip(find_versitygw()[1])
    folder = tmp_path / "buckets"
    (folder / BUCKET).mkdir(parents=True)
    with start_versitygw(folder) as endpoint:
        env = make_variables(endpoint)
        zarrc("import", large[0] / "a.npy", URL, f"--chunks=70,{MIB}", "--codec=none", env=env)
        zarrc("cp", "--mem=64M", large[0] / "a.zarr", OTHER, env=env)
        zarrc("import", array_file, f"s3://{BUCKET}/small.zarr", "--chunks=10,10", env=env)
        zarrc("mv", f"s3://{BUCKET}/small.zarr", f"s3://{BUCKET}/moved.zarr", env=env)
        assert zarrc("diff", array_file.with_suffix(".zarr"), f"s3://{BUCKET}/moved.zarr", env=env).code == 0
        for url in (URL, OTHER):
            assert zarrc("diff", large[0] / "a.zarr", url, env=env).code == 0
        zarrc("rm", "-r", "--force", URL, env=env)
        zarrc("clean", "--age=0", OTHER, env=env)
        assert not (folder / BUCKET / "x.zarr/c").exists()


def test_parts_of_a_shard_take_little_memory(call, server, tmp_path, monkeypatch):
    """Chunks of 24 MiB are more than the three parts that go up at once."""
    make_array(tmp_path / "s.npy", (240, MIB))
    for name, value in make_variables(server.url).items():
        monkeypatch.setenv(name, value)
    options = (f"--shards=240,{MIB}", f"--chunks=24,{MIB}", "--codec=none", "-j1", "--mem=210M", "-q")
    nothing = peak("version")
    assert peak("import", tmp_path / "s.npy", URL, *options) - nothing < 240 * 1024
    sizes = [len(part) for upload in server.service.uploads.values() for part in upload["parts"].values()]
    assert len(sizes) == 31 and set(sizes[:-1]) == {8 * MIB}, sizes
    assert (server.bucket / "x.zarr/c/0/0").stat().st_size > 240 * MIB
    value = np.memmap(server.bucket / "x.zarr/c/0/0", mode="r")
    assert (value[:240 * MIB] == np.load(tmp_path / "s.npy", mmap_mode="r").ravel()).all()


def test_cp_of_a_large_value_within_little_memory(call, server, large):
    call("cp", "--mem=64M", large[0] / "a.zarr", URL)
    assert server.service.count("UploadPart") == 9 and server.service.open_uploads() == []
    assert (server.bucket / "x.zarr/c/0/0").read_bytes() == (large[0] / "a.zarr/c/0/0").read_bytes()


# ---- completions ----


def fail_once(name, answer, is_done=False):
    """A `before` or an `after` that answers the first request of this name so."""
    left = [1]

    def before(found, _request, *answered):
        if found == name and left[0] and bool(answered) == is_done:
            left[0] -= 1
            return answer
        return None
    return before


def error_inside(code):
    return answer_xml(f"<Error><Code>{code}</Code><Message>text of the server</Message></Error>")


@pytest.mark.parametrize("answer", [error_inside("InternalError"), answer_error(500, "InternalError"), LOST, (200, {}, b"<half"), (200, {}, b" \n\n "),
                                    error_inside("NoSuchUpload"), answer_error(404, "NoSuchUpload")], ids=lambda _: "answer")
def test_a_completion_that_succeeds_although_its_answer_does_not(call, server, large, answer):
    answer = (LOST, {}, b"") if answer is LOST else answer
    server.service.after = fail_once("CompleteUpload", answer, True)
    done = upload(call, large, code=None)
    is_sure = b"NoSuchUpload" in answer[2]  # the first answer to a completion, which was sent once
    assert (done.code == 0) != is_sure, done.err
    if not is_sure:
        assert server.service.count("HeadObject") > 0 and call("diff", large[0] / "a.zarr", URL).code == 0


@pytest.mark.parametrize("code", ["InternalError", "SlowDown", "AccessDenied", "NoSuchUpload"])
def test_a_completion_that_fails_inside_of_a_200(call, server, large, code):
    server.service.before = lambda name, _: error_inside(code) if name == "CompleteUpload" else None
    done = upload(call, large, code=None)
    assert done.code != 0 and "x.zarr/c/0/0" not in done.out.decode(), done.err
    assert ("lost the parts" if code == "NoSuchUpload" else f"code {code}") in done.err and "unknown" not in done.err
    assert server.service.count("CompleteUpload") == (4 if code in ("InternalError", "SlowDown") else 1)
    assert server.service.open_uploads() == [] and not (server.bucket / "x.zarr/c/0/0").exists()


@pytest.mark.parametrize("code", ["InternalError", "SlowDown"])
def test_a_completion_that_fails_once_inside_of_a_200(call, server, large, code):
    server.service.before = fail_once("CompleteUpload", error_inside(code))
    upload(call, large)
    assert server.service.count("CompleteUpload") == 2 and call("diff", large[0] / "a.zarr", URL).code == 0


def test_nobody_knows_what_became_of_a_completion(call, server, large):
    """The HEAD that should tell fails, too: that is no conflict."""
    def before(name, request):
        if name == "CompleteUpload":
            return error_inside("InternalError")
        return answer_error(403, "AccessDenied") if name == "HeadObject" and "/c/" in request.path else None

    server.service.before = before
    assert "unknown whether this write succeeded" in upload(call, large, code=None).err


def test_a_failure_aborts_the_upload(call, server, large):
    server.service.before = lambda name, request: answer_error(403, "AccessDenied") if name == "UploadPart" and "partNumber=5" in request.path else None
    assert "code AccessDenied" in upload(call, large, code=None).err
    assert server.service.count("AbortUpload") == 1 and server.service.count("CompleteUpload") == 0 and server.service.open_uploads() == []


def test_throttled_and_lost_parts_are_sent_again(call, server, large):
    first, second = fail_once("UploadPart", answer_error(503, "SlowDown")), fail_once("UploadPart", (LOST, {}, b""))
    server.service.before = lambda *found: first(*found) or second(*found)
    upload(call, large)
    assert server.service.count("UploadPart") == 11 and call("diff", large[0] / "a.zarr", URL).code == 0


@pytest.mark.parametrize("hangs", ["UploadPart", "CompleteUpload", "AbortUpload"])
def test_a_cancel_waits_for_no_hanging_service(server, large, hangs):
    """After the signal no request cleans up: `clean` does."""
    def before(name, request):
        if hangs == "AbortUpload" and name == "UploadPart" and "partNumber=9" in request.path:
            return answer_error(403, "AccessDenied")
        return (HANGS, {}, b"") if name == hangs else None

    server.service.before = before
    process = subprocess.Popen([PROGRAM, "import", "-q", large[0] / "a.npy", URL, f"--chunks=70,{MIB}", "--codec=none"],
                               env=make_variables(server.url), stderr=subprocess.PIPE)
    while hangs not in server.service.names:
        assert process.poll() is None, process.stderr.read()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode != 0 and server.service.count("AbortUpload") == (hangs == "AbortUpload")


# ---- clean ----


def test_clean_aborts_old_uploads(call, server, large):
    call("create", URL, "--shape=3", "--dtype=int8")
    server.service.page = 2
    for i in range(5):
        server.service.uploads[f"u{i}+&="] = {"key": f"x.zarr/c/a b+{i % 2}", "parts": {}, "meta": {}, "begun": i * 1000.0, "is_open": True}
    for key, ident, begun in (("x.zarr.other/c/0", "far", 0.0), ("x.zarr/c/1", "young", time.time() - 600)):
        server.service.uploads[ident] = {"key": key, "parts": {}, "meta": {}, "begun": begun, "is_open": True}
    dry = call("clean", "-n", URL)
    assert sorted(dry.text.split("\n")[:-1]) == [f"c/a b+{i % 2}?uploadId=u{i}%2B%26%3D" for i in (0, 2, 4, 1, 3)]
    assert "5 left-over files, and 1 younger" in dry.err and len(server.service.open_uploads()) == 7
    done = call("clean", "--json", URL)
    assert (len(done.json["found"]), done.json["removed"]) == (6, 5)
    assert sorted(server.service.open_uploads()) == ["x.zarr.other/c/0", "x.zarr/c/1"]
    assert call("clean", "-n", "--age=300", URL).text == "c/1?uploadId=young\n"
    for answer, text in ((answer_xml("<ListMultipartUploadsResult><IsTruncated>true</IsTruncated></ListMultipartUploadsResult>"), "without a marker"),
                         (answer_xml("<ListMultipartUploadsResult><Upload><Key>far/1</Key><UploadId>1</UploadId>"
                                     "<Initiated>2001-01-01T00:00:00Z</Initiated></Upload></ListMultipartUploadsResult>"), "outside of the prefix"),
                         (answer_xml("<Other/>"), "no ListMultipartUploadsResult"), (answer_error(403, "AccessDenied"), "code AccessDenied")):
        server.service.before = lambda name, _, answer=answer: answer if name == "ListUploads" else None
        assert text in call("clean", URL, code=None).err
    again = answer_xml("<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>x</NextKeyMarker></ListMultipartUploadsResult>")
    server.service.before = lambda name, _: again if name == "ListUploads" else None
    assert "repeats the marker" in call("clean", URL, code=None).err


def test_clean_where_keys_are_not_escaped(call, server):
    call("create", URL, "--shape=3", "--dtype=int8")
    server.service.page, server.service.escapes = 1, False
    for i, key in enumerate(("x.zarr/c/a+b", "x.zarr/c/50%", "x.zarr/c/%41")):
        server.service.uploads[f"u{i}"] = {"key": key, "parts": {}, "meta": {}, "begun": 0.0, "is_open": True}
    call("clean", URL)
    assert server.service.open_uploads() == []


@pytest.mark.parametrize("key,ident", [("x.zarr/zarr.json", ""), ("x.zarr/zarr.json", "a\nb"), ("x.zarr/zarr.json", "i" * 9000), ("x.zarr/", "u"),
                                       ("x.zarr/../zarr.json", "u"), ("x.zarr//zarr.json", "u")])
def test_clean_sends_no_other_delete(call, server, key, ident):
    """Some services erase the value where the id of the upload is empty."""
    call("create", URL, "--shape=3", "--dtype=int8")
    page = answer_xml(f"<ListMultipartUploadsResult><Upload><Key>{key}</Key><UploadId>{ident}</UploadId><Initiated>2001-01-01T00:00:00Z</Initiated>"
                      "</Upload><IsTruncated>false</IsTruncated></ListMultipartUploadsResult>")
    server.service.before = lambda name, _: page if name == "ListUploads" else None
    server.log.clear()
    call("clean", URL)
    assert server.service.count("ListUploads") == 2 and not [row for row in server.log if row.startswith("DELETE")], server.log


# ---- copies ----


@pytest.fixture
def array(call, array_file):
    call("import", array_file, URL, "--chunks=10,10")


def test_the_service_copies(call, server, array):
    server.log.clear()
    call("cp", URL, OTHER)
    assert server.service.count("CopyObject") == 16 and not [row for row in server.log if row.startswith("GET") and "/c/" in row]
    assert call("diff", URL, OTHER).code == 0
    call("mv", OTHER, f"s3://{BUCKET}/z.zarr")
    assert server.service.count("CopyObject") == 32 and not (server.bucket / "in").exists()
    assert call("diff", URL, f"s3://{BUCKET}/z.zarr").code == 0


@pytest.mark.parametrize("answer,code,text", [
    (answer_error(501, "NotImplemented"), 0, ""), (answer_error(400, "InvalidRequest"), 0, ""), (answer_error(405, "MethodNotAllowed"), 0, ""),
    (answer_error(403, "AccessDenied"), None, "AccessDenied"), (error_inside("InternalError"), None, "code InternalError"),
    (answer_xml("<Other/>"), 0, ""), (error_inside("PreconditionFailed"), 0, "")], ids=lambda _: "copy")
def test_the_service_does_not_copy(call, server, array, answer, code, text):
    """Then zarrc reads and writes, unless the failure tells why that fails, too."""
    server.service.before = lambda name, _: answer if name == "CopyObject" else None
    done = call("cp", URL, OTHER, code=code)
    assert text in done.err and (done.code == 0) == (code == 0)
    if code == 0:
        assert call("diff", URL, OTHER).code == 0


def test_a_copy_that_fails_once_inside_of_a_200(call, server, array):
    server.service.before = fail_once("CopyObject", error_inside("SlowDown"))
    call("cp", URL, OTHER)
    assert call("diff", URL, OTHER).code == 0 and server.service.count("CopyObject") == 17


@pytest.mark.parametrize("n", [2, 99])
def test_a_source_that_changes_before_it_is_copied(call, server, array, n):
    """The new version is copied, unless it changes again and again."""
    left = [n]

    def before(name, request):
        if name != "CopyObject" or "c/0/0" not in request.headers["x-amz-copy-source"] or not left[0]:
            return None
        left[0] -= 1
        return answer_error(412, "PreconditionFailed")

    server.service.before = before
    call("cp", URL, OTHER)  # at last it reads the value
    assert server.service.count("CopyObject") == (18 if n == 2 else 19) and call("diff", URL, OTHER).code == 0


def test_other_credentials_copy_nothing(call, server, array):
    """A service would read the source with the rights of the writer."""
    server.service.secrets["OTHERID"] = "OtherSecret"
    call("cp", URL, OTHER, "--source-store-option=access_key_id=OTHERID", "--source-store-option=secret_access_key=OtherSecret", code=None)
    assert server.service.count("CopyObject") == 0
    call("cp", URL, OTHER, "--source-store-option=requester_pays=true", code=None)
    assert server.service.count("CopyObject") == 0


def test_a_source_that_changes_while_its_parts_are_copied(call, server, array):
    copy_in_parts(server, ['"one"', '"two"', '"one"', '"one"'] + ['"one"'] * 99)
    call("cp", URL, OTHER)
    assert server.service.count("UploadPartCopy") == 24 and server.service.count("AbortUpload") == 1


def copy_in_parts(server, etags, change=None, size=6 << 30):
    """The source has this size, says the server, and the parts are copied by their numbers alone."""
    etags = iter(etags)

    def before(name, request):
        if name == "HeadObject" and "/c/0/0" in request.path and "x.zarr" in request.path:
            etag = next(etags)
            return 200, {"Content-Length": str(size), **({"ETag": etag} if etag else {})}, b""
        if name == "UploadPartCopy":
            assert request.headers["x-amz-copy-source-if-match"] == '"one"'
            return change or answer_xml("<CopyPartResult><ETag>&quot;p&quot;</ETag></CopyPartResult>")
        return answer_xml("<CompleteMultipartUploadResult><ETag>&quot;n-12&quot;</ETag></CompleteMultipartUploadResult>") if name == "CompleteUpload" else None
    server.service.before = before


def test_a_copy_in_parts(call, server, array, tmp_path):
    copy_in_parts(server, ['"one"'] * 9)
    call("cp", URL, OTHER)
    assert server.service.count("UploadPartCopy") == 12 and server.service.count("CompleteUpload") == 1


@pytest.mark.parametrize("size,n_parts", [(512 << 20, 0), ((512 << 20) + 1, 2)])
def test_no_request_copies_much(call, server, array, size, n_parts):
    """A service may be silent while it copies."""
    copy_in_parts(server, ['"one"'] * 9, size=size)
    call("cp", URL, OTHER, code=None)
    assert server.service.count("UploadPartCopy") == n_parts


@pytest.mark.parametrize("answer", [answer_error(501, "NotImplemented"), (405, {}, b"")], ids=["501", "405"])
def test_a_service_that_copies_no_parts(call, server, array, answer):
    """Then zarrc reads the value, which has no 600 MiB."""
    copy_in_parts(server, ['"one"'] * 99, answer, size=600 << 20)
    call("cp", URL, OTHER, code=None)
    assert server.service.count("UploadPartCopy") > 0 and [row for row in server.log if row.startswith("GET") and "x.zarr/c/0/0" in row]


@pytest.mark.parametrize("etags,change,n_parts", [
    ([None] * 99, None, 0), (['W/"one"'] * 99, None, 0),  # parts of two versions would be mixed
    (['"one"', '"two"'] * 99, None, 48), (['"one"'] * 99, answer_error(412, "PreconditionFailed"), None),
    (['"one"'] * 99, error_inside("PreconditionFailed"), None)])
def test_a_copy_in_parts_mixes_no_versions(call, server, array, etags, change, n_parts):
    copy_in_parts(server, etags, change)
    assert call("cp", URL, OTHER, code=None).code != 0  # it then reads the value, which has no 6 GiB
    assert server.service.count("CompleteUpload") == 0 and server.service.open_uploads() == []
    assert n_parts is None or server.service.count("UploadPartCopy") == n_parts


# ---- between any two stores ----


@pytest.fixture(params=["folder", "archive", "bucket", "archive in a bucket", "web server"])
def source(request, call, server, array_file, tmp_path):
    """The same array in a store of each kind."""
    local = array_file.with_suffix(".zarr")
    if request.param == "folder":
        yield local
    elif request.param == "web server":
        call("cp", local, tmp_path / "archive.zip")
        with run_server(tmp_path) as www:
            yield f"{www.environment['ZR_SERVER']}/archive.zip"
    else:
        url = {"archive": tmp_path / "source.zip", "bucket": f"s3://{BUCKET}/source.zarr", "archive in a bucket": f"s3://{BUCKET}/source.zip"}[request.param]
        call("cp", local, url)
        yield url


@pytest.mark.parametrize("destination", ["{folder}/to.zarr", "{folder}/to.zip", f"s3://{BUCKET}/to.zarr", f"s3://{BUCKET}/to.zip"])
def test_between_any_two_stores(call, server, source, destination, array_file, tmp_path):
    """cp, diff, verify, reencode, mv and rm, with progress, a second run that resumes, and verification."""
    to, local, is_spooled = destination.format(folder=tmp_path), array_file.with_suffix(".zarr"), destination.startswith("s3:") and destination.endswith("zip")
    said = call("cp", "--verify", "--progress=json", source, to).err
    assert [line for line in said.splitlines() if '"progress": "copy"' in line][-1].count('"done_items": 17') == 1 and "all bytes compared equal" in said, said
    assert call("diff", local, to).code == call("diff", source, to).code == 0 and "1 array" in call("verify", to).err
    assert "skipped 17 objects" in call("cp", "--resume", source, to).err
    other = to.replace("/to.", "/other.")
    said = call("reencode", "--chunks=7,7", "--progress=json", source, other).err
    assert '"progress": "reencode"' in said and call("diff", local, other).code == 0
    moved = to.replace("/to.", "/moved.")
    if is_spooled:  # nothing in it can be deleted
        assert "stores of kind zip cannot write" in call("mv", to, moved, code=6).err
        return
    assert call("reencode", "--chunks=7,7", "--resume", source, other).code == 0
    assert '"progress": "move"' in call("mv", "--progress=json", to, moved).err
    assert call("diff", local, moved).code == 0 and call("info", to, code=3)
    call("rm", "-r", "--progress=json", moved)
    assert call("info", moved, code=3)


# ---- many keys ----


def test_keys_are_erased_together(call, server, array):
    server.service.names.clear()
    call("rm", "-r", "--force", URL)
    assert list(server.bucket.iterdir()) == []
    assert server.service.count("DeleteObjects") >= 1 and server.service.count("DeleteObject") < 8, server.service.names


def test_more_than_a_thousand_keys(call, server, tmp_path):
    make_array(tmp_path / "many.npy", (30, 41))
    call("import", tmp_path / "many.npy", URL, "--chunks=1,1")
    server.service.names.clear()
    call("rm", "-r", "--force", URL)
    assert list(server.bucket.iterdir()) == [] and 2 <= server.service.count("DeleteObjects") <= 4


@pytest.mark.parametrize("answer,n_batches", [
    (answer_error(501, "NotImplemented"), 1), (answer_error(405, "MethodNotAllowed"), 1), ((405, {}, b""), 1), (answer_error(400, "InvalidRequest"), 1),
    (answer_error(400, "MissingContentMD5"), 1), (answer_xml("<DeleteResult/>"), None),
    (answer_xml("<DeleteResult><Error><Key>none of ours</Key><Code>InternalError</Code></Error></DeleteResult>"), None),
    (answer_xml("<Other/>"), None), ((200, {}, b"<DeleteResult>"), None), (error_inside("InternalError"), None)], ids=lambda _: "batch")
def test_a_service_that_erases_not_all(call, server, array, answer, n_batches):
    """Each key that it does not name as deleted is erased by itself."""
    server.service.before = lambda name, _: answer if name == "DeleteObjects" else None
    server.service.names.clear()
    call("rm", "-r", "--force", URL)
    assert list(server.bucket.iterdir()) == [] and server.service.count("DeleteObject") >= 16
    assert n_batches is None or server.service.count("DeleteObjects") == n_batches


def test_a_strange_error_counts_for_the_whole_batch(call, server, array):
    """The answer names all keys as deleted, and an error of a key that is none of them."""
    def before(name, request):
        if name != "DeleteObjects":
            return None
        keys = "".join(f"<Deleted><Key>{part.split(b'</Key>')[0].decode()}</Key></Deleted>" for part in request.body.split(b"<Key>")[1:])
        return answer_xml(f"<DeleteResult>{keys}<Error><Key>x.zarr%2Fc%2F0</Key><Code>InternalError</Code></Error></DeleteResult>")

    server.service.before = before
    call("rm", "-r", "--force", URL)
    assert list(server.bucket.iterdir()) == []


@pytest.mark.parametrize("status,code", [(400, "MalformedXML"), (403, "AccessDenied")])
def test_a_batch_that_is_refused(call, server, array, status, code):
    """No reason to believe that the service has no batches."""
    server.service.before = lambda name, _: answer_error(status, code) if name == "DeleteObjects" else None
    assert f"code {code}" in call("rm", "-r", "--force", URL, code=None).err
    assert any((server.bucket / "x.zarr/c").rglob("*"))


def test_an_error_of_one_key_is_told(call, server, array):
    def after(name, _, answer):
        return (*answer[:2], answer[2].replace(b"<Deleted><Key>x.zarr/c/1/1</Key></Deleted>",
                b"<Error><Key>x.zarr/c/1/1</Key><Code>AccessDenied</Code></Error>")) if name == "DeleteObjects" else None

    server.service.after = after
    server.service.before = lambda name, request: answer_error(403, "AccessDenied") if name == "DeleteObject" and request.path.endswith("/c/1/1") else None
    done = call("rm", "-r", "--force", URL, code=None)
    assert done.code != 0 and "c/1/1" in done.err and "AccessDenied" in done.err


# ---- a million keys ----


class Many:
    """Answers for n keys of a byte that are in no file: they are listed, copied and erased. They are chunks, or lie beside the document of a group."""

    def __init__(self, service, n, folder):
        self.n, self.folder, self.erased, service.before = n, folder, set(), self

    def __call__(self, name, request):
        path, _, query = request.path.partition("?")
        if name == "ListObjects":
            query = dict(urllib.parse.parse_qsl(query))
            return self.list(query) if query["prefix"].startswith("x.zarr/" + self.folder * ("delimiter" in query)) else None
        if name == "DeleteObjects":
            keys = [found.findtext("Key") for found in read_xml(request.body).iter("Object")]
            self.erased.update(key for key in keys if "/c/" in key)
            return answer_xml(f"<DeleteResult>{''.join(f'<Deleted><Key>{key}</Key></Deleted>' for key in keys)}</DeleteResult>")
        if "/c/" not in path:
            return None
        return answer_xml("<CopyObjectResult><ETag>&quot;1&quot;</ETag></CopyObjectResult>") if name == "CopyObject" else answer_range(request, b"1", ETag='"1"')

    def list(self, query):
        """Numbers of as many digits have the order of texts."""
        first = int(query.get("continuation-token", 0))
        last = min(self.n, first + 1000)
        keys = {f"x.zarr/{self.folder}{self.n + i}": 1 for i in range(first, last)}
        if query["prefix"] == "x.zarr/" and last == self.n:
            keys["x.zarr/zarr.json"] = 9
        return answer_list({key: size for key, size in keys.items() if key not in self.erased}, query["prefix"], token=str(last) if last < self.n else None)


@pytest.mark.parametrize("command", ["ls", "ls -R --json", "rm -r -n", "clean -n", "cp", "rm -r --force"])
def test_listings_take_constant_memory(call, server, monkeypatch, command):
    """ZARRC_LISTED_KEYS: how many keys; a hundredth of them takes as much memory. A copy keeps the names."""
    n = int(os.environ.get("ZARRC_LISTED_KEYS", "3000" if command == "cp" else "60000"))
    for name, value in make_variables(server.url).items():
        monkeypatch.setenv(name, value)
    peaks, is_group = [], command.startswith("ls")
    for number in (n // 100, n):
        shutil.rmtree(server.bucket / "x.zarr", ignore_errors=True)
        call("create", URL, *(["--group"] if is_group else [f"--shape={3 * n}", "--chunks=1", "--dtype=int8"]))
        many = Many(server.service, number, "" if is_group else "c/")
        server.log.clear()
        peaks.append(peak(*command.split(), URL, *([f"s3://{BUCKET}/copy{number}.zarr"] if command == "cp" else [])))
        assert sum("list-type" in row for row in server.log) >= number // 1000
        assert command != "cp" or server.service.count("CopyObject") >= number
        assert "--force" not in command or len(many.erased) == number
        server.service.before = lambda *_: None
    print(f"{n} keys: {peaks} KiB")
    assert peaks[1] - peaks[0] < 2 * 1024 + (n * 120 // 1024 if command == "cp" else 0), peaks


class LaggingList(set):
    """Keys of which no listing learns that they were erased, before a number of them was."""

    def __init__(self, until):
        self.until = until

    def __contains__(self, key):
        return len(self) >= self.until and super().__contains__(key)


@pytest.mark.parametrize("until", [10**9, 4500])
def test_a_listing_that_lags_behind(call, server, until):
    """A service confirms each DELETE, also of keys that are gone, and lists them for ever or for a while."""
    call("create", URL, "--shape=5000", "--chunks=1", "--dtype=int8")
    many = Many(server.service, 5000, "c/")
    many.erased = LaggingList(until)
    call("rm", "-r", "--force", URL)
    assert len(many.erased) == 5000


# ---- archives ----


ZIP = f"s3://{BUCKET}/in/new.zip"


@pytest.mark.parametrize("command", ["cp {folder}/small.zarr", "mv {folder}/copy.zarr", "import --chunks=10,10 {folder}/small.npy", "reencode {folder}/small.zarr"],
                         ids=lambda text: text.split()[0])
def test_a_new_archive_appears_at_the_end(call, server, array_file, tmp_path, command):
    writes = []
    call("cp", array_file.with_suffix(".zarr"), tmp_path / "copy.zarr")
    server.service.before = lambda name, request: writes.append((name, request.path)) if request.method in ("PUT", "POST") and "probe" not in request.path else None
    call(*command.format(folder=tmp_path).split(), ZIP)
    assert writes == [("PutObject", f"/{BUCKET}/in/new.zip")]  # the chunks, the metadata and the end of the job at once
    assert (tmp_path / "copy.zarr").exists() != command.startswith("mv")
    assert call("diff", array_file.with_suffix(".zarr"), ZIP).code == 0
    call("verify", ZIP)
    assert not [file for file in server.bucket.rglob("*") if file.is_file() and file.name != "new.zip"]
    with zipfile.ZipFile(server.bucket / "in/new.zip") as archive:
        assert archive.testzip() is None and "zarr.json" in archive.namelist()


def test_an_archive_is_not_changed_in_place(call, server, array_file):
    call("cp", array_file.with_suffix(".zarr"), ZIP)
    before = (server.bucket / "in/new.zip").read_bytes()
    for command in (("attrs", "set", ZIP, "units", '"m"'), ("rm", "-r", "--force", ZIP), ("cp", "--overwrite", array_file.with_suffix(".zarr"), ZIP),
                    ("repack", ZIP)):
        assert call(*command, code=None).code != 0, command
    assert (server.bucket / "in/new.zip").read_bytes() == before


def test_a_large_archive_goes_up_in_parts(call, server, large):
    call("cp", "--mem=64M", large[0] / "a.zarr", ZIP)
    assert server.service.count("UploadPart") >= 9 and server.service.open_uploads() == []
    with zipfile.ZipFile(server.bucket / "in/new.zip") as archive:
        assert archive.read("c/0/0") == large[1].tobytes()


@pytest.mark.parametrize("command", ["cp", "mv"])
def test_a_copy_to_an_archive_that_is_there(call, server, array_file, command):
    """It is compared. What differs, lacks or has too much is an error that says what to do, and nothing is written or deleted."""
    store = array_file.with_suffix(".zarr")
    call("cp", store, ZIP)
    before, first = (server.bucket / "in/new.zip").read_bytes(), min(store.glob("c/*/*"))
    server.log.clear()

    def expect(text):
        said = call(command, "--resume", store, ZIP, code=6).err
        assert text in said and "cannot be changed, and does not equal the source: delete it, or choose another destination" in said and "--force" not in said, said

    whole = first.read_bytes()
    first.write_bytes(whole[::-1])
    expect("exists with other bytes")
    first.unlink()
    expect("exists, but the source lacks it")
    first.write_bytes(whole)
    (store / "c/9").mkdir()
    (store / "c/9/9").write_bytes(whole)
    expect("c/9/9 is missing")
    (store / "c/9/9").unlink()
    assert "stores of kind zip cannot write" in call(command, "--skip-equal", "--force", store, ZIP, code=6).err
    assert store.exists() and not any(row.split()[0] in ("PUT", "POST", "DELETE") for row in server.log), server.log
    assert "skipped 17 objects" in call(command, "--resume", store, ZIP).err
    assert store.exists() == (command == "cp") and (server.bucket / "in/new.zip").read_bytes() == before
    assert call("verify", ZIP).code == 0
    with zipfile.ZipFile(server.bucket / "in/new.zip", "a") as archive:
        archive.writestr(".zarrc-job", '{"zarrc_job": 1, "command": "cp"}')
    if command == "cp":
        expect("the copy is not complete")


def test_a_new_ozx_has_its_order(call, server, array_file):
    url = f"s3://{BUCKET}/new.ozx"
    call("cp", array_file.with_suffix(".zarr"), url)
    assert call("diff", array_file.with_suffix(".zarr"), url).code == 0
    with zipfile.ZipFile(server.bucket / "new.ozx") as archive:
        assert archive.infolist()[0].filename == "zarr.json" and archive.testzip() is None


def test_a_failed_archive_leaves_nothing(call, server, array_file):
    server.service.before = lambda name, request: answer_error(403, "AccessDenied") if name == "PutObject" and "new.zip" in request.path else None
    for command in (("cp", array_file.with_suffix(".zarr")), ("import", array_file), ("reencode", array_file.with_suffix(".zarr")), ("mv", array_file.with_suffix(".zarr"))):
        assert "AccessDenied" in call(*command, ZIP, code=None).err
        assert not (server.bucket / "in").exists() and (array_file.with_suffix(".zarr") / "zarr.json").exists()
    server.service.before = lambda *_: None
    call("mv", "--resume", array_file.with_suffix(".zarr"), ZIP)
    assert call("verify", ZIP).code == 0 and not array_file.with_suffix(".zarr").exists()
