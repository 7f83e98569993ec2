"""kvikio - KvikIO's codec `nvcomp_batch` for numcodecs, by CPU libraries: what it wrote until its version 25.08 by
nvCOMP's batched calls. As there, the algorithm may have capitals and is stored in small letters, LZ4 has a header unless
an option says no, and the other streams are raw. GDeflate has no library here."""
import zlib

import cramjam
import numcodecs
from numcodecs.abc import Codec
from numcodecs.compat import ensure_bytes, ndarray_copy

MOST = 1 << 20  # bytes of a decoded chunk, where nothing tells them
ALGORITHMS = ("lz4", "zstd", "deflate", "snappy")


def deflate(data):
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


class NvCompBatchCodec(Codec):
    codec_id = "nvcomp_batch"

    def __init__(self, algorithm, options=None):
        self.algorithm = algorithm.lower()
        self.options = dict(options or {})

    def _has_header(self):
        return self.options.get("has_header", True)

    def encode(self, buf):
        data = ensure_bytes(buf)
        if self.algorithm == "lz4":
            return numcodecs.LZ4().encode(data)[0 if self._has_header() else 4:]
        return {"zstd": numcodecs.Zstd().encode, "deflate": deflate, "snappy": cramjam.snappy.compress_raw}[
            self.algorithm](data)

    def decode(self, buf, out=None):
        data = ensure_bytes(buf)
        if self.algorithm == "lz4" and self._has_header():
            data = numcodecs.LZ4().decode(data)
        elif self.algorithm == "lz4":
            room = bytearray(MOST)
            data = room[:cramjam.lz4.decompress_block_into(data, room, output_len=MOST)]
        else:
            data = {"zstd": numcodecs.Zstd().decode, "deflate": lambda data: zlib.decompress(data, -15),
                    "snappy": cramjam.snappy.decompress_raw}[self.algorithm](data)
        return ndarray_copy(bytes(data), out)


numcodecs.register_codec(NvCompBatchCodec)
