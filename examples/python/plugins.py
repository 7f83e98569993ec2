"""A codec, a data type and a store that are written in Python."""
import sys
import zlib

import numpy as np

import zarrc
from zarrc import plugins


@plugins.register
class Deflate(plugins.BytesCodec):
    """A compressor. All chunks of a wave come in one call of `encode_batch`, which calls `encode`."""

    name = "example.deflate"

    def __init__(self, level: int = 6) -> None:
        if not 0 <= level <= 9:
            raise ValueError(f"level {level} is not from 0 to 9")
        self.level = level

    def configuration(self) -> dict[str, int]:
        return {"level": self.level}

    def encode(self, chunk: bytes, spec: plugins.ChunkSpec) -> bytes:
        return zlib.compress(chunk, self.level)

    def decode(self, chunk: bytes, spec: plugins.ChunkSpec) -> bytes:
        return zlib.decompress(chunk)


@plugins.register
class Celsius(plugins.DataType):
    """Hundredths of a degree in two bytes; fill values are text such as "21.5 C"."""

    name = "example.celsius"
    dtype = np.dtype("i2")
    configuration = {"resolution": 0.01}

    def fill_from_json(self, value: str, zarr_format: int) -> int:
        return round(float(value.removesuffix(" C")) * 100)

    def fill_to_json(self, element: np.int16, zarr_format: int) -> str:
        return f"{int(element) / 100:g} C"


@plugins.register
class Shelf(plugins.Store):
    """A store that counts what is read. URLs of its scheme are opened by `from_url`."""

    scheme = "shelf"
    shelves: dict[str, "Shelf"] = {}

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.reads = 0

    @classmethod
    def from_url(cls, url: str, **storage_options: str) -> "Shelf":
        return cls.shelves.setdefault(url, cls())

    def get(self, key: str) -> bytes | None:
        self.reads += 1
        return self.values.get(key)

    def set(self, key: str, value: bytes) -> None:
        self.values[key] = value

    def delete(self, key: str) -> None:
        self.values.pop(key, None)

    def list_prefix(self, prefix: str) -> list[str]:
        return [key for key in self.values if key.startswith(prefix)]


def main(path: str) -> None:
    array = zarrc.create_array(path, shape=(100, 100), chunks=(10, 10), dtype=Celsius, fill_value=2150,
                               compressors={"name": "example.deflate", "configuration": {"level": 9}}, overwrite=True)
    array[:50] = np.arange(100)
    again = zarrc.open_array(path, mode="r")
    print(again.metadata["data_type"], again.metadata["fill_value"], again.compressors)
    print(again[49, 99], again[50, 0], again.nchunks_initialized)

    copied = zarrc.create_array("shelf://one", name="a", data=again[:20], chunks=(10, 10))
    print(copied, int(copied[...].sum()), Shelf.shelves["shelf://one"].reads > 0)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "example.zarr")
