"""The commands that read, with a hierarchy and an archive that nginx serves, and with servers that list no files."""
import contextlib
import functools
import http.server
import io
import json
import os
import shutil
import threading
import zipfile

import nginx
import numpy as np
import pytest

DATA = np.arange(40 * 40, dtype="int32").reshape(40, 40)


@pytest.fixture(scope="module")
def www(tmp_path_factory, zarrc):
    folder = tmp_path_factory.mktemp("www")
    np.save(folder / "a.npy", DATA)
    zarrc("import", folder / "a.npy", folder / "x.zarr/a", "--chunks=10,10")
    zarrc("import", folder / "a.npy", folder / "x.zarr/in/s", "--chunks=10,10", "--shards=20,20", '--attributes={"units": "K"}')
    with zipfile.ZipFile(folder / "x.zarr.zip", "w") as archive:
        for file in sorted((folder / "x.zarr").rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder / "x.zarr"))
    return folder


@pytest.fixture(scope="module")
def server(www, zarrc):
    if nginx.find_program() is None:
        pytest.skip("nginx is not installed")
    with nginx.start(www) as found:
        done = zarrc("info", f"{found.url}/x.zarr", code=None)
        if done.code == 6 and "libcurl" in done.err:
            pytest.skip(done.err)
        yield found


@pytest.fixture(params=["x.zarr", "x.zarr.zip"])
def url(request, server):
    return f"{server.url}/{request.param}"


def test_info_and_lists(zarrc, url):
    assert zarrc("info", "--json", f"{url}/in/s").json["shape"] == [40, 40]
    assert zarrc("ls", "-R", url).text.split() == ["a", "in/", "in/s"]
    assert "in" in zarrc("tree", url).text
    assert zarrc("attrs", "get", f"{url}/in/s", "units").text == '"K"\n'
    assert zarrc("info", "--stats", f"{url}/a").code == 0
    assert zarrc("explain", f"{url}/in/s[0]").code == 0


def test_elements(zarrc, url, tmp_path):
    assert zarrc("cat", f"{url}/a[3,:4]").text.split() == ["120", "121", "122", "123"]
    zarrc("export", f"{url}/in/s", tmp_path / "s.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "s.npy"), DATA)


def test_whole_hierarchies(zarrc, url, www, tmp_path):
    assert zarrc("diff", www / "x.zarr", url).code == 0
    assert "2 arrays" in zarrc("verify", url).err
    zarrc("cp", url, tmp_path / "copy.zarr")
    assert zarrc("diff", www / "x.zarr", tmp_path / "copy.zarr").code == 0
    zarrc("reencode", f"{url}/a", tmp_path / "new.zarr", "--chunks=20,20")


def test_what_does_not_work(zarrc, url, server, tmp_path):
    for command in (("create", f"{url}/new", "--shape=3", "--dtype=int8"), ("rm", "-r", f"{url}/a"), ("mv", f"{url}/a", f"{url}/b"),
                    ("consolidate", url), ("attrs", "set", f"{url}/a", "units", '"m"')):
        done = zarrc(*command, code=None)
        assert done.code in (2, 6) and "write" in done.err, (command, done.err)
    missing = zarrc("info", f"{server.url}/none.zarr", code=3)
    assert "no Zarr array or group" in missing.err
    refused = zarrc("info", "http://127.0.0.1:9/x.zarr", code=None)
    assert refused.code in (3, 7) and "127.0.0.1:9/x.zarr" in refused.err


def test_secrets_are_not_shown(zarrc, server):
    url = server.url.replace("//", "//user:SECRET1@")
    for text in (f"{url}/none.zarr?sig=SECRET2", f"{url}/plain/none.zarr:/a?sig=SECRET2"):
        for command in ("info", "ls", "verify"):
            done = zarrc(command, text, code=None, env={"ZARRC_LOG_LEVEL": "trace"})
            assert done.code != 0 and "SECRET" not in done.err + done.text
    done = zarrc("info", "--json", f"{url}/x.zarr/a?sig=SECRET2")
    assert "SECRET" not in done.text + done.err and json.loads(done.text)
    assert server.requests()[-1].split()[1].endswith("?sig=SECRET2")


def test_options(zarrc, server, tmp_path):
    """They reach the store of http, also below an archive."""
    (tmp_path / "token").write_text("SECRET\n")
    for url in (f"{server.url}/x.zarr/a", f"{server.url}/x.zarr.zip/a", f"zip:{server.url}/x.zarr.zip/a"):
        for option in ("tries=3", f"bearer_token=@{tmp_path}/token", f"{server.url}=user=u", 'headers={"X-One": "1"}', "untrusted=true"):
            assert zarrc("info", url, f"--store-option={option}", "--untrusted").code == 0
        for option in ("tries=0", "nothing=1", "headers=SECRET"):
            done = zarrc("info", url, f"--store-option={option}", code=2)
            assert option.partition("=")[0] in done.err and "SECRET" not in done.err
    assert zarrc("info", f"{server.url}/x.zarr/a", "--store-option=http://elsewhere=nothing=1").code == 0


def test_requests(zarrc, server):
    def count(*command):
        server.requests()
        zarrc(*command)
        return [row.split()[1].split(".zarr", 1)[1] for row in server.requests()]

    assert count("cat", f"{server.url}/x.zarr/a[0,:4]") == ["/a/zarr.json", "/a/c/0/0"]
    assert count("cat", f"{server.url}/x.zarr:/in/s[0,:4]") == ["/in/s/zarr.json", "/in/s/c/0/0", "/in/s/c/0/0"]
    assert count("cat", f"{server.url}/x.zarr.zip/a[0,:4]") == [".zip"] * 3  # the directory, the document, the chunk
    assert count("explain", f"{server.url}/x.zarr/a[0]") == ["/a/zarr.json"]
    assert count("info", f"{server.url}/x.zarr/a") == ["/a/zarr.json", "/a/.zarrc-job"]
    assert count("ls", f"{server.url}/x.zarr/in") == ["/in/zarr.json", "/in/.zarrc-job", "/in/", "/in/s/zarr.json"]
    assert len(count("cat", f"{server.url}/x.zarr/a")) == 1 + 1 + 16  # the document, a command at work, the chunks


def test_requests_of_nodes_of_either_format(zarrc, server, www):
    """The documents of a node are read once, and those of v2 are sent together once zarr.json is missing."""
    zarrc("import", www / "a.npy", www / "2.zarr/a", "--zarr-format=2", "--chunks=40,40")
    zarrc("attrs", "set", www / "2.zarr", "k", "1")
    zarrc("import", www / "a.npy", www / "3.zarr/a", "--chunks=40,40")
    zarrc("consolidate", www / "3.zarr")

    def count(*command):
        server.requests()
        done = zarrc(*command)
        rows = [row.split()[1].split(".zarr/", 1)[1] for row in server.requests()]
        return done, [row for row in rows if not row.endswith(".zarrc-job")]

    documents = [".zarray", ".zattrs", ".zgroup", ".zmetadata"]
    for command in (["info"], ["info", "--metadata"], ["attrs"], ["ls"], ["tree"]):
        done, rows = count(*command, f"{server.url}/2.zarr")
        assert rows[0] == "zarr.json" and sorted(rows[1:5]) == documents, (command, rows)
        assert rows[5:6] == ([] if command in (["info", "--metadata"], ["attrs"]) else [""]), (command, rows)  # the listing
        assert count(*command, f"{server.url}/3.zarr")[1] == ["zarr.json"], command
        if command != ["info"]:
            assert done.text == zarrc(*command, www / "2.zarr").text.replace(f"{www}", server.url)
    for command in (["info"], ["attrs"], ["ls"]):
        rows = count(*command, f"{server.url}/2.zarr/a")[1]
        assert sorted(rows) == [f"a/{name}" for name in (*documents, "zarr.json")]
    rows = count("cat", f"{server.url}/2.zarr/a[0,:4]")[1]
    assert rows[0] == "a/zarr.json" and sorted(rows[1:3]) == ["a/.zarray", "a/.zattrs"] and rows[3:] == ["a/0.0"]


# ---- servers that list no files ----

class _Pages(http.server.SimpleHTTPRequestHandler):
    """As python -m http.server: the listing of a folder is a page for people."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *unused):
        pass


class _NoFolders(_Pages):
    def list_directory(self, path):
        self.send_error(404)


@contextlib.contextmanager
def serve(handler, folder):
    found = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=folder))
    found.daemon_threads = True
    thread = threading.Thread(target=found.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{found.server_address[1]}"
    finally:
        found.shutdown()
        thread.join()
        found.server_close()


def make_hierarchy(zarrc, store, npy, zarr_format):
    for path, options in (("a", ["--chunks=10,10"]), ("in/s", ["--shards=20,20"] if zarr_format == 3 else []), ("in/t", [])):
        zarrc("import", npy, store / path, f"--zarr-format={zarr_format}", "--chunks=10,10", *options)
    zarrc("attrs", "set", store / "in", "title", '"t"')
    (store / ("a/c/1/1" if zarr_format == 3 else "a/1.1")).unlink()  # a missing block


@pytest.fixture(scope="module")
def hierarchies(tmp_path_factory, zarrc):
    """Hierarchies 2 and 3, as they are and consolidated ("2c", "3c")."""
    folder = tmp_path_factory.mktemp("hierarchies")
    np.save(folder / "a.npy", DATA)
    for zarr_format in (2, 3):
        make_hierarchy(zarrc, folder / f"{zarr_format}.zarr", folder / "a.npy", zarr_format)
        shutil.copytree(folder / f"{zarr_format}.zarr", folder / f"{zarr_format}c.zarr")
        zarrc("consolidate", folder / f"{zarr_format}c.zarr")
    return folder


@pytest.fixture(scope="module", params=[_Pages, _NoFolders])
def host(request, hierarchies, zarrc):
    with serve(request.param, hierarchies) as found:
        done = zarrc("info", f"{found}/3.zarr", code=None)
        if done.code == 6 and "libcurl" in done.err:
            pytest.skip(done.err)
        yield found


def contents(folder):
    return {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("name", ["2c.zarr", "3c.zarr", "3c.zarr/in", "2.zarr/a", "3.zarr/in/s"])
def test_without_listings(zarrc, hierarchies, host, tmp_path, name):
    """A group with consolidated metadata, one below it, and a single array."""
    url, local = f"{host}/{name}", hierarchies / name
    note = "cannot be listed: only the objects that its metadata names are"
    counts = ("valid", "n_faults", "n_notes", "arrays", "groups", "objects", "bytes")
    here, there = zarrc("verify", "--json", local), zarrc("verify", "--json", url)
    assert [there.json[key] for key in counts] == [here.json[key] for key in counts]
    assert there.err.count(note) == 1 and note not in here.err
    done = zarrc("cp", "--verify", "--json", url, tmp_path / "copy.zarr")
    assert done.json["verified"] and done.err.count(note) == 1
    assert contents(tmp_path / "copy.zarr") == contents(local)
    assert zarrc("cp", "--resume", "--json", url, tmp_path / "copy.zarr").json["objects"] == 0
    assert zarrc("diff", url, local).code == zarrc("diff", local, url).code == 0
    assert zarrc("reencode", "-q", "--skip-damaged", url, tmp_path / "new.zarr").code == 0
    assert zarrc("diff", url, tmp_path / "new.zarr").code == 0
    stored = [zarrc("info", "--stats", "--json", place).json["stored"] for place in (url, local)]
    assert [stored[0][key] for key in ("objects", "bytes")] == [stored[1][key] for key in ("objects", "bytes")]
    done = zarrc("mv", url, tmp_path / "moved.zarr", code=None)
    assert done.code in (2, 6) and "write" in done.err and not (tmp_path / "moved.zarr").exists()


@pytest.mark.parametrize("name", ["2c", "3"])
def test_arrays_without_listings(zarrc, hierarchies, host, tmp_path, name):
    url, local = f"{host}/{name}.zarr", hierarchies / f"{name}.zarr"
    for path in ("a", "in/s"):
        for command in (["cat"], ["summary", "--json"], ["ls", "--stored"]):
            assert zarrc(*command, f"{url}/{path}").text.replace(host, f"{hierarchies}") == zarrc(*command, local / path).text
        zarrc("export", f"{url}/{path}", tmp_path / "a.npy", "--force")
        assert np.load(tmp_path / "a.npy")[39, 39] == DATA[39, 39]
    shutil.copytree(local, tmp_path / "broken.zarr")
    block = tmp_path / "broken.zarr" / ("a/0.1" if name == "2c" else "a/c/0/1")
    block.write_bytes(b"broken")
    done = zarrc("verify", "--yes", f"--repair=from:{url}", tmp_path / "broken.zarr")
    assert contents(tmp_path / "broken.zarr") == contents(local), done.err


@pytest.mark.parametrize("name", ["2.zarr", "3.zarr", "3.zarr/in"])
def test_groups_of_unknown_members(zarrc, host, tmp_path, name):
    for command in (("verify",), ("cp",), ("diff",), ("info", "--stats")):
        to = [tmp_path / "x.zarr"] if command[0] in ("cp", "diff") else []
        if command[0] == "diff":
            zarrc("create", "--group", to[0])
        done = zarrc(*command, f"{host}/{name}", *to, code=6)
        assert "the server does not list its files" in done.err and "consolidated metadata" in done.err
        shutil.rmtree(tmp_path / "x.zarr", ignore_errors=True)


class _SomeFolders(_Pages):
    """Lists as nginx does, but not the folder "in"."""

    def list_directory(self, path):
        if path.rstrip("/").endswith("/in"):
            return super().list_directory(path)
        rows = [{"name": e.name, "type": "directory"} if e.is_dir() else {"name": e.name, "type": "file", "size": e.stat().st_size}
                for e in sorted(os.scandir(path), key=lambda e: e.name)]
        body = json.dumps(rows).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", len(body))
        self.end_headers()
        return io.BytesIO(body)


def test_servers_that_list_some_folders(zarrc, hierarchies, host, tmp_path):
    """The consolidated metadata tells no node that a listing told before."""
    with serve(_SomeFolders, hierarchies) as url:
        for command in (("verify",), ("cp",), ("diff",)):
            to = [tmp_path / "x.zarr"] if command[0] == "cp" else [hierarchies / "3c.zarr"] if command[0] == "diff" else []
            done = zarrc(*command, f"{url}/3c.zarr", *to, code=6)
            assert "the server does not list its files" in done.err


class _OtherHead(_NoFolders):
    """HEAD says that blocks are missing, or that missing ones exist."""
    lies = ""

    def do_HEAD(self):
        if "/c/" not in self.path:
            return super().do_HEAD()
        self.send_response(404 if self.lies == "missing" else 200)
        self.send_header("Content-Length", "0" if self.lies == "missing" else "30")
        self.end_headers()


class _LostFolder(_SomeFolders):
    """Answers 404 for a folder that it lists."""

    def list_directory(self, path):
        return self.send_error(404) if path.rstrip("/").endswith("a/c/1") else super().list_directory(path)


@pytest.mark.parametrize("lies", ["missing", "there"])
def test_blocks_exist_if_they_can_be_read(zarrc, hierarchies, tmp_path, lies):
    shutil.copytree(hierarchies / "3c.zarr", tmp_path / "x.zarr")
    (tmp_path / "x.zarr/a/c/0/1").unlink()
    handler = type("_Handler", (_OtherHead,), {"lies": lies})
    with serve(handler, tmp_path) as host:
        zarrc("cp", f"{host}/x.zarr", tmp_path / "copy.zarr", code=5)  # an object whose length is not known is not copied
        assert not (tmp_path / "copy.zarr/zarr.json").exists()
        sound = zarrc("verify", "--json", tmp_path / "x.zarr").json["arrays"]
        assert zarrc("verify", "--json", f"{host}/x.zarr").json["arrays"] == sound


def test_a_listed_folder_that_is_lost(zarrc, hierarchies, tmp_path):
    with serve(_LostFolder, hierarchies) as host:
        for command in ("verify", "cp"):
            to = [tmp_path / "x.zarr"] if command == "cp" else []
            done = zarrc(command, f"{host}/3.zarr/a", *to, code=3)
            assert "the server lists this folder, but lacks it" in done.err


def test_faults_without_listings(zarrc, hierarchies, tmp_path):
    store = tmp_path / "x.zarr"
    shutil.copytree(hierarchies / "3c.zarr", store)
    (store / "a/c/0/1").write_bytes(b"broken")
    (store / "in/t/zarr.json").unlink()
    zarrc("attrs", "set", store / "in/s", "other", "1", "--no-consolidate")
    with serve(_NoFolders, tmp_path) as host:
        faults = zarrc("verify", "--json", f"{host}/x.zarr", code=1).json["faults"]
        done = zarrc("cp", f"{host}/x.zarr", tmp_path / "copy.zarr", code=3)
    assert {fault["key"] for fault in faults} == {"a/c/0/1", "in/t", "zarr.json"}, faults
    reasons = " ".join(fault["reason"] for fault in faults)
    assert "/in/s: has another document" in reasons and "/in/t: is in the consolidated metadata only" in reasons
    assert "in/t" in done.err and not (tmp_path / "copy.zarr/zarr.json").exists()


def test_grids_that_are_too_large_to_ask_for(zarrc, tmp_path):
    zarrc("create", tmp_path / "x.zarr", "--shape=1000000,1000000", "--chunks=1,1", "--dtype=int8")
    zarrc("create", tmp_path / "y.zarr", "--shape=0,5", "--chunks=1,1", "--dtype=int8")
    with serve(_NoFolders, tmp_path) as host:
        for command in (["verify"], ["cp"], ["info", "--stats"], ["ls", "--stored"]):
            done = zarrc(*command, f"{host}/x.zarr", *([tmp_path / "copy.zarr"] if command == ["cp"] else []), code=4)
            assert "the grid has 1000000000000 blocks" in done.err + done.text, command
        assert not (tmp_path / "copy.zarr/zarr.json").exists()
        assert zarrc("cp", f"{host}/y.zarr", tmp_path / "none.zarr").code == 0
