"""The commands that read, with a hierarchy and an archive that nginx serves."""
import json
import zipfile

import nginx
import numpy as np
import pytest

pytestmark = pytest.mark.skipif(nginx.find_program() is None, reason="nginx is not installed")
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
