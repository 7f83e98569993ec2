"""Zip archives of each kind that fuzz_zip may meet: members of both compressions, with each extra record."""
import io
import warnings
import zipfile

LONG = b"the value of a member, " * 20


def member(name):
    return zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))


class Stream(io.BytesIO):
    """What zipfile cannot seek in: it writes sizes after the data."""

    def seekable(self):
        return False

    def tell(self):
        raise OSError

    def seek(self, *unused):
        raise OSError


def archive(compression=zipfile.ZIP_STORED, above="", prefix=b"", comment=b"", forced=False, out=None, names=("zarr.json", "c/0")):
    out = out or io.BytesIO()
    out.write(prefix)
    with warnings.catch_warnings(), zipfile.ZipFile(out, "a" if prefix else "w") as made:
        warnings.simplefilter("ignore")  # duplicate names
        for name in names:
            info = member(above + name)
            info.compress_type = compression
            with made.open(info, "w", force_zip64=forced) as file:
                file.write(LONG)
        made.comment = comment
    return out.getvalue()


def seeds():
    plain = archive()
    return [plain, archive(zipfile.ZIP_DEFLATED), archive(above="x.zarr/"), archive(prefix=b"prefix"), archive(comment=b"a comment"),
            archive(forced=True), archive(zipfile.ZIP_DEFLATED, out=Stream()), archive(names=("a", "a", "../b", "c\\d", "b\u00e4ume", "e/")),
            plain + b"cut off", plain + archive(names=("other",))[:-30], plain[:-1], zip64(plain), b"PK\5\6" + bytes(18)]


def zip64(plain):
    """The same archive with the records of zip64 before its end record."""
    end = plain.rindex(b"PK\5\6")
    n, size, at = plain[end + 10:end + 12], plain[end + 12:end + 16], plain[end + 16:end + 20]
    four, six = bytes(4), bytes(6)
    record = (b"PK\6\6" + (44).to_bytes(8, "little") + b"\x2d\0\x2d\0" + bytes(8) + n + six + n + six + size + four + at + four)
    locator = b"PK\6\7" + four + end.to_bytes(8, "little") + (1).to_bytes(4, "little")
    return plain[:end] + record + locator + plain[end:end + 8] + b"\xff" * 12 + plain[end + 20:]
