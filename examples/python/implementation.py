"""An implementation of a codec that zarrc has already: shuffle, for memory of the host and of a GPU.

A package brings it to all its users by an entry point, here for a module of the name `implementation`::

    [project.entry-points."zarrc.plugins"]
    example = "implementation:plugins"
"""
import importlib
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

import zarrc
from zarrc.plugins import Batch, ChunkMemory, Implementation


class Shuffle(Implementation):
    """The first bytes of all elements, then the second ones, and so on. Bytes behind the last element stay."""

    codec = "numcodecs.shuffle"
    name = "example.numpy"
    memory = "host"
    is_safe = True  # NumPy and CuPy check all bounds

    def view(self, memory: ChunkMemory) -> Any:
        """The bytes as an array, without a copy."""
        return np.asarray(memory)

    def decode_batch(self, inputs: Sequence[ChunkMemory], outputs: Sequence[ChunkMemory], batch: Batch) -> list[int]:
        return [self.turn(one, to, decodes=True) for one, to in zip(inputs, outputs)]

    def encode_batch(self, inputs: Sequence[ChunkMemory], outputs: Sequence[ChunkMemory], batch: Batch) -> list[int]:
        return [self.turn(one, to, decodes=False) for one, to in zip(inputs, outputs)]

    def turn(self, source: ChunkMemory, target: ChunkMemory, decodes: bool) -> int:
        if len(source) > len(target):
            return len(source)  # more room is needed
        width: int = self.configuration["elementsize"]
        n = len(source) // width
        data, to = self.view(source), self.view(target)
        shape = (width, n) if decodes else (n, width)
        to[:n * width] = data[:n * width].reshape(shape).T.ravel()
        to[n * width:len(source)] = data[n * width:]
        return len(source)


class ShuffleCuda(Shuffle):
    """The same in memory of CUDA. zarrc waits for CuPy's current stream."""

    name = "example.cupy"
    memory = "cuda"

    def __init__(self, **configuration: object) -> None:
        super().__init__(**configuration)
        try:
            self.cupy = importlib.import_module("cupy")
        except ImportError:
            raise zarrc.errors.UnsupportedError("CuPy is not installed") from None

    def view(self, memory: ChunkMemory) -> Any:
        return self.cupy.from_dlpack(memory)


plugins = [Shuffle, ShuffleCuda]


def main(path: str) -> None:
    zarrc.plugins.register(plugins)
    codec = {"name": "numcodecs.shuffle", "configuration": {"elementsize": 4}}
    array = zarrc.create_array(path, data=np.arange(10000, dtype="i4"), chunks=1000, compressors=[codec, "zstd"], overwrite=True)
    stats = zarrc.Stats()
    print(array.read(stats=stats).sum(), stats.chunks_fallback)
    print(*[line for line in str(array.explain()).splitlines() if line.startswith("path")])
    print(array.read(codec_preference="shuffle=cpu").sum())


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "example.zarr")
