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
    server.requests()
    zarrc("cat", f"{server.url}/x.zarr:/a[0,:4]")
    assert len(server.requests()) <= 5  # three looks at the document, one for a command at work, a chunk
