"""Cases for stores.py: one stored chunk that is damaged, a bomb, or no file."""
import os
import struct

from stores import (BLOSC, BYTES, CHUNK, CORRUPT, CRC, GZIP, IO, LZ4, MIB, UNSUPPORTED, ZLIB, ZSTD, add, blosc,
                    crc32c, grid, gzip, gzip_bomb, lz4, lz4_bomb, v3, whole, zlib_bomb, zstd, zstd_bomb)


def chunk(name, value, codecs=(), word="a/c/0/0", status=CORRUPT, more=None, **changes):
    """One stored chunk and the result of reading it. The last element is in a missing chunk."""
    add(name, lambda: v3(whole(value() if callable(value) else value), codecs=[BYTES, *codecs],
                         **changes),
        data=(status, word) if status else None, values={"last": "7", **(more or {})})


def special(name, make, status, word="a/c/0/0", listed=True):
    def prepare(root):
        os.makedirs(f"{root}/a/c/0")
        make(f"{root}/a/c/0/0", root)
    add(name, lambda: v3(), data=(status, word), prepare=prepare, chunks=None,
        fault=(status, word) if listed else None)


chunk("chunk_empty", b"")
chunk("chunk_short", CHUNK[:-1])
chunk("chunk_long", CHUNK + b"\0")
add("chunk_very_long", v3(whole(CHUNK)), data=(CORRUPT, "a/c/0/0"),
    prepare=lambda root: os.truncate(f"{root}/a/c/0/0", 1 << 40))
chunk("chunk_whole_array", CHUNK * 4)
chunk("crc_empty", b"", [CRC])
chunk("crc_3_bytes", b"abc", [CRC])
chunk("crc_wrong", CHUNK + b"\0\0\0\0", [CRC])
chunk("crc_of_short", lambda: CHUNK[:6] + crc32c(CHUNK[:6]), [CRC])
chunk("crc_right", lambda: CHUNK + crc32c(CHUNK), [CRC], status=None, more={"first": "1"})
chunk("gzip_empty", b"", [GZIP])
chunk("gzip_header_only", b"\x1f\x8b\x08\0\0\0\0\0\0\x03", [GZIP])
chunk("gzip_not", b"rubbish, rubbish, rubbish", [GZIP])
chunk("gzip_bomb", gzip_bomb, [GZIP])
chunk("gzip_short", lambda: gzip(CHUNK[:5]), [GZIP])
chunk("gzip_long", lambda: gzip(CHUNK + b"\0"), [GZIP])
chunk("gzip_crc", lambda: gzip(CHUNK)[:-8] + bytes(8), [GZIP])
chunk("gzip_cut", lambda: gzip(CHUNK)[:-9], [GZIP])
chunk("gzip_members_too_long", lambda: gzip(CHUNK) + gzip(CHUNK), [GZIP])
chunk("gzip_rubbish_tail", lambda: gzip(CHUNK) + b"\x1f\x8brubbish", [GZIP])
chunk("gzip_10000_members", lambda: gzip(b"") * 10000 + gzip(CHUNK) + gzip(b"x"), [GZIP])
chunk("gzip_name_without_end", b"\x1f\x8b\x08\x08\0\0\0\0\0\x03" + b"n" * MIB, [GZIP])
chunk("gzip_two_members", lambda: gzip(CHUNK[:3]) + gzip(CHUNK[3:]), [GZIP], status=None,
      more={"first": "1"})
chunk("zlib_bomb", zlib_bomb, [ZLIB])
chunk("zlib_dictionary", b"\x78\xbb\x01\x02\x03\x04" + bytes(20), [ZLIB])
chunk("zstd_empty", b"", [ZSTD])
chunk("zstd_bomb", zstd_bomb, [ZSTD])
chunk("zstd_bomb_with_right_claim", lambda: zstd_bomb(1024, 1 << 30), [ZSTD])
chunk("zstd_bomb_with_small_claim", lambda: zstd_bomb(1024, 8), [ZSTD])
chunk("zstd_claims_10_gib", zstd(CHUNK, 10 << 30), [ZSTD])
chunk("zstd_claims_2_64", zstd(CHUNK, 2**64 - 2), [ZSTD])
chunk("zstd_claims_what_says_unknown", zstd(CHUNK, 2**64 - 1), [ZSTD], status=None,
      more={"first": "1"})
chunk("zstd_claims_less", zstd(CHUNK, 4), [ZSTD])
chunk("zstd_no_claim_long", zstd(CHUNK + b"x", False), [ZSTD])
chunk("zstd_window_2_gib", struct.pack("<IB", 0xFD2FB528, 0) + b"\xa8" + b"\x41\0\0" + CHUNK, [ZSTD],
      status=None, more={"first": "1"})
chunk("zstd_dictionary", struct.pack("<IBI", 0xFD2FB528, 0x23, 99) + b"\x08\x41\0\0" + CHUNK, [ZSTD])
chunk("zstd_two_frames_too_long", zstd(CHUNK) + zstd(CHUNK), [ZSTD])
chunk("zstd_rubbish_tail", zstd(CHUNK) + b"tail", [ZSTD])
chunk("zstd_skippable_only", struct.pack("<II", 0x184D2A50, 4) + b"abcd", [ZSTD])
chunk("zstd_skippable_lies", struct.pack("<II", 0x184D2A50, 0xFFFFFFFF) + b"abcd", [ZSTD])
chunk("zstd_no_claim", zstd(CHUNK, False), [ZSTD], status=None, more={"first": "1"})
chunk("lz4_empty", b"", [LZ4])
chunk("lz4_prefix_only", b"\x08\0\0\0", [LZ4])
chunk("lz4_claims_2_gib", lz4(CHUNK, 2**31 - 1), [LZ4])
chunk("lz4_claims_negative", lz4(CHUNK, -1), [LZ4])
chunk("lz4_claims_less", lz4(CHUNK, 4), [LZ4])
chunk("lz4_bomb", lambda: lz4_bomb(255 * MIB), [LZ4])
chunk("lz4_bomb_with_right_size", lambda: lz4_bomb(8), [LZ4])
chunk("lz4_offset_before_start", struct.pack("<i", 8) + b"\x14A\xff\xff\x50hello", [LZ4])
chunk("lz4_offset_zero", struct.pack("<i", 8) + b"\x10A\0\0\x30abc", [LZ4])
chunk("blosc_header_zeros", bytes(16), [BLOSC])
chunk("blosc_15_bytes", blosc(CHUNK)[:15], [BLOSC])
chunk("blosc_claims_2_gib", blosc(CHUNK, nbytes=2**31 - 17), [BLOSC])
chunk("blosc_claims_4_gib", blosc(CHUNK, nbytes=2**32 - 1), [BLOSC])
chunk("blosc_claims_less", blosc(CHUNK, nbytes=4), [BLOSC])
chunk("blosc_length_lies", blosc(CHUNK, cbytes=1000), [BLOSC])
chunk("blosc_length_short", blosc(CHUNK, cbytes=17), [BLOSC])
chunk("blosc_blocksize_zero", blosc(CHUNK, blocksize=0, flags=0), [BLOSC])
chunk("blosc_blocksize_huge", blosc(CHUNK, blocksize=2**31 - 1, flags=0), [BLOSC])
chunk("blosc_typesize_zero", blosc(CHUNK, typesize=0, flags=1), [BLOSC])
chunk("blosc_typesize_255", blosc(CHUNK, typesize=255, flags=1), [BLOSC])
chunk("blosc_offsets_outside", blosc(struct.pack("<I", 0x7FFFFFFF) + CHUNK, nbytes=8, blocksize=8,
                                     flags=0x20), [BLOSC])
chunk("blosc_offset_negative", blosc(struct.pack("<i", -4) + CHUNK, nbytes=8, blocksize=8,
                                     flags=0x20), [BLOSC])
chunk("blosc_version", blosc(CHUNK, version=77), [BLOSC], status=UNSUPPORTED)
chunk("blosc_unknown_format", blosc(struct.pack("<I", 20) + CHUNK, nbytes=8, blocksize=8,
                                    flags=7 << 5), [BLOSC], "no inner format has the number 7")
chunk("blosc_rubbish_tail", blosc(CHUNK) + b"tail", [BLOSC])
chunk("blosc_stored", blosc(CHUNK), [BLOSC], status=None, more={"first": "1"})
chunk("two_bombs", lambda: gzip(gzip_bomb()), [GZIP, GZIP])
add("chunks_of_a_gib", lambda: v3({"c/0": b"short"}, shape=[2**30], chunk_grid=grid(2**30),
                                  data_type="uint8"), data=(CORRUPT, "a/c/0"), last=(CORRUPT, "a/c/0"),
    first=None)
add("chunk_keys_that_are_none",
    lambda: v3({key: b"x" for key in ("c/0/00", "c/-1/0", "c/9/9", "c/0/1e0", "c/1e3/0", "x",
                                      "c/18446744073709551616/0")}), values={"read": "7", "first": "7", "last": "7"})
add("file_where_a_folder_of_chunks_belongs", lambda: v3({"c/1": b"x"}), read=(IO, "a/c/1/0"),
    last=(IO, "a/c/1/1"), chunks=(IO, "a/c/1/0"), fault=(IO, "a/c/1/0"), values={"first": "7"})

special("chunk_is_fifo", lambda path, _: os.mkfifo(path), IO)
special("chunk_is_folder", lambda path, _: os.mkdir(path), IO, listed=False)
special("chunk_is_device", lambda path, _: os.symlink("/dev/zero", path), IO)
special("chunk_leads_out", lambda path, _: os.symlink("/etc/passwd", path), IO)
special("chunk_leads_out_relative",
        lambda path, root: os.symlink("../../../../../../../../../../etc/passwd", path), IO)
special("chunk_leads_to_itself", lambda path, _: os.symlink("0", path), IO)
add("folder_of_chunks_leads_out", lambda: v3(), data=(IO, "a/c/0/0"), last=(IO, "a/c/"),
    chunks=(IO, "a/c/0/0"), fault=(IO, "a/c/0/0"), prepare=lambda root: os.symlink("/etc", f"{root}/a/c"))
add("folder_of_chunks_is_file", lambda: v3({"c": b"x"}), data=(IO, "a/c/0/0"), last=(IO, "a/c/1/1"),
    chunks=(IO, "a/c/0/0"), fault=(IO, "a/c/0/0"), write=(IO, "a/c"))
