"""Credentials in URLs and options appear in nothing that the package says, and in pickles on purpose."""
import logging
import pickle

import numpy as np
import pytest
import zarrc
from zarrc import plugins

SECRET = "XyZZy42"
VALUES = {}


@plugins.register
class Vault(plugins.Store):
    scheme = "vault"

    def __init__(self, name, token):
        if not token:
            raise PermissionError("the vault needs a token")
        self.values = VALUES.setdefault(name, {})

    @classmethod
    def from_url(cls, url, **options):
        return cls(url.partition("@")[2].partition("?")[0], options.get("token"))

    def get(self, key):
        if "lost" in key:
            raise OSError(5, "the server failed")
        return self.values.get(key)

    def set(self, key, value):
        self.values[key] = value

    def delete(self, key):
        self.values.pop(key, None)

    def list_prefix(self, prefix):
        return [key for key in list(self.values) if key.startswith(prefix)]


def url(path):
    return f"vault://user:{SECRET}@host/{path}?key={SECRET}"


@pytest.fixture
def array(caplog):
    caplog.set_level(logging.DEBUG)
    VALUES.clear()
    yield zarrc.create_array(url("x.zarr/a"), data=np.arange(6), chunks=2, storage_options={"token": SECRET})
    assert SECRET not in caplog.text
    for values in VALUES.values():
        assert not any(SECRET.encode() in bytes(value) or SECRET in key for key, value in values.items())


def test_what_is_shown(array):
    store = array.store
    assert store.url == str(store) == "vault://host/x.zarr?key=***" and array.path == "a"
    for text in (repr(store), repr(array), str(array), array.info, zarrc.open_group(url("x.zarr"), storage_options={"token": 1}), store._token()):
        assert SECRET not in str(text) and SECRET not in repr(text)


def test_errors(array):
    for path, options in (("x.zarr/none", {"token": SECRET}), ("x.zarr/lost", {"token": SECRET}), ("x.zarr/a", {}), ("x.zarr/%zz", {"token": 1}),
                          ("none.zip/a", {"token": SECRET})):
        with pytest.raises(Exception) as found:
            zarrc.open_array(url(path), mode="r", storage_options=options)
        assert SECRET not in str(found.value) and SECRET not in repr(found.value), path
        assert SECRET not in str(getattr(found.value, "__notes__", ""))
    with pytest.raises(zarrc.errors.ZarrcError) as found:
        zarrc.open_group(f"other://u:{SECRET}@h/x?k={SECRET}", mode="r")
    assert SECRET not in str(found.value) and "other://h/x?k=***" in str(found.value)


def test_pickles_and_equality(array):
    text = pickle.dumps(array)
    assert SECRET.encode() in text
    assert (pickle.loads(text)[...] == np.arange(6)).all()
    options = {"token": SECRET}
    same, other = (zarrc.open_store(u, storage_options=options) for u in (url("x.zarr"), url("x.zarr").replace(f"key={SECRET}", "key=1")))
    assert same == array.store and hash(same) == hash(array.store) and same._token() == array.store._token()
    assert same.url == other.url and same != other and same._token() != other._token()
