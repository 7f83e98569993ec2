"""Stores of other packages: listings that come in pages, where the keys are, and copies that the store makes."""
import os
import time

import numpy as np
import pytest
import zarr
from zarr.storage import MemoryStore, WrapperStore

import zarrc
from zarrc import _find_adapter, _store
from zarrc._adapter_places import fsspec_place, obstore_place

fsspec = pytest.importorskip("fsspec")
obstore_functions = pytest.importorskip("obstore")
obstore = pytest.importorskip("obstore.store")


# ---- pages ----


class ManyKeys(MemoryStore):
    """100,000 keys; counts how many are listed before a listing ends."""

    def __init__(self):
        super().__init__()
        self.keys, self.most, self.ended = dict.fromkeys(f"many/{i}" for i in range(100_000)), 0, 0

    async def list_prefix(self, prefix):
        try:
            for i, key in enumerate(list(self.keys)):
                self.most = max(self.most, i + 1)
                yield key
        finally:
            self.ended += 1

    async def delete(self, key):
        del self.keys[key]


class ManyObjects(ManyKeys):
    """The same as functions of obstore."""

    async def list(self, store, prefix, chunk_size):
        keys = list(self.keys)
        for i in range(0, len(keys), chunk_size):
            rows = [{"path": key, "size": 1} for key in keys[i:i + chunk_size]]
            self.most = max(self.most, i + len(rows))
            yield rows

    async def delete_async(self, store, key):
        await self.delete(key)


def test_pages_of_a_listing():
    """The library gets the rows of a listing page by page, and erases a prefix without collecting all keys."""
    source = ManyKeys()
    adapter = _find_adapter.find_adapter(source)
    adapter.can_erase_prefix = False  # the library does it
    store = _store.open_adapter(adapter)
    assert sum(1 for _ in store.list_prefix("many")) == source.most == 100_000
    source.most = 0
    store.delete_dir("many")
    assert not source.keys
    assert 0 < source.most <= 10_000
    assert not adapter.listings
    deadline = time.monotonic() + 30
    while source.ended < 26 and time.monotonic() < deadline:  # those that the library did not read to their end
        time.sleep(0.01)
    assert source.ended >= 26


def test_pages_of_obstore():
    source = obstore.MemoryStore()
    store = _store.open_foreign(source)
    for i in range(2500):
        store.set(f"many/{i}", b"x")
    assert len(set(store.list_prefix("many"))) == 2500
    objects = store._adapter.obstore = ManyObjects()
    store.delete_dir("many")
    assert not objects.keys
    assert 0 < objects.most <= 10_000
    assert not store._adapter.listings


# ---- places ----


def wrap_folder(path):
    return WrapperStore(zarr.storage.LocalStore(path))


SAME = {
    "fsspec and a path": lambda path: (fsspec.get_mapper(f"file://{path}"), path),
    "a link and fsspec": lambda path: (f"{path}-link", fsspec.get_mapper(f"local://{path}")),
    "obstore and FsspecStore": lambda path: (obstore.LocalStore(path), zarr.storage.FsspecStore.from_url(f"file://{path}")),
    "a wrapper and obstore": lambda path: (wrap_folder(path), zarr.storage.ObjectStore(obstore.LocalStore(f"{path}-link"))),
    "two maps": lambda path: (fsspec.get_mapper("memory://two/maps"), zarr.storage.FsspecStore.from_url("memory://two/maps/")),
}


@pytest.mark.parametrize("kind", SAME)
def test_one_place_in_two_spellings(tmp_path, kind):
    path = str(tmp_path / "x.zarr")
    os.mkdir(path)
    os.symlink(path, f"{path}-link")
    one, other = SAME[kind](path)
    zarrc.create_array(one, name="a", data=np.arange(10))
    for if_exists in ("raise", "skip", "replace"):
        with pytest.raises(zarrc.ZarrcError, match="one place"):
            zarrc.copy(zarrc.open_array(one, path="a", mode="r"), zarrc.open_group(other), if_exists=if_exists)
    assert (zarrc.open_array(other, path="a", mode="r")[:] == np.arange(10)).all()
    zarrc.copy(zarrc.open_array(other, path="a", mode="r"), zarrc.open_group(one), "b")
    assert (zarrc.open_array(other, path="b", mode="r")[:] == np.arange(10)).all()


class CloudFiles:
    """What s3fs and gcsfs tell of themselves."""

    def __init__(self, protocol, **told):
        self.protocol = protocol
        self.__dict__.update(told)


def test_places_of_services(monkeypatch):
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    amazon = {obstore_place(obstore.S3Store("b", prefix="p/q", skip_signature=True)),
              obstore_place(obstore.S3Store.from_url("https://b.s3.us-west-2.amazonaws.com/p/q", skip_signature=True)),
              obstore_place(obstore.S3Store("b", prefix="p/q", endpoint="https://s3.eu-west-1.amazonaws.com", skip_signature=True)),
              fsspec_place(CloudFiles(("s3", "s3a")), "b/p/q")}
    assert amazon == {("s3", "", "b", "p/q")}
    own = {obstore_place(obstore.S3Store("b", endpoint="https://H.example:443", skip_signature=True)),
           fsspec_place(CloudFiles("s3", client_kwargs={"endpoint_url": "https://h.example"}), "b")}
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://h.example/")
    own.add(fsspec_place(CloudFiles("s3", client_kwargs={}), "b"))
    assert own == {("s3", "h.example", "b", "")}
    assert obstore_place(obstore.GCSStore("b", skip_signature=True)) == fsspec_place(CloudFiles(("gs", "gcs")), "b/")
    azure = obstore.AzureStore.from_url("az://c/x", account_name="n", skip_signature=True)
    assert obstore_place(azure) == ("az", "n", "c", "x")
    assert obstore_place(obstore.HTTPStore.from_url("https://H:443/a%20b")) == ("https", "h", "", "/a b")
    assert fsspec_place(CloudFiles("sftp"), "x") is None
    assert _find_adapter.find_adapter(ManyKeys()).place() is None


class CountedObjects:
    """The functions of obstore."""

    def __init__(self):
        self.n_puts = self.n_copies = 0

    def __getattr__(self, name):
        return getattr(obstore_functions, name)

    def put_async(self, *arguments):
        self.n_puts += 1
        return obstore_functions.put_async(*arguments)

    def copy_async(self, *arguments):
        self.n_copies += 1
        return obstore_functions.copy_async(*arguments)


@pytest.mark.parametrize("is_one", [True, False])
def test_chunks_are_copied_by_the_store(is_one):
    source = obstore.MemoryStore()
    stores = [_store.open_adapter(_find_adapter.find_adapter(source if is_one or i == 0 else obstore.MemoryStore())) for i in range(2)]
    zarrc.create_array(stores[0], name="a", data=np.arange(100), chunks=10)
    counted = stores[1]._adapter.obstore = CountedObjects()
    zarrc.copy(zarrc.open_array(stores[0], path="a", mode="r"), zarrc.open_group(stores[1], mode="a"), "b")
    assert (counted.n_copies >= 10) is is_one
    assert (counted.n_puts < 10) is is_one
    assert (zarrc.open_array(stores[1], path="b", mode="r")[:] == np.arange(100)).all()
