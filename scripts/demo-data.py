"""demo-data - the Python parts of scripts/demo: it unpacks the measured data from the packages
that ship it, and checks zarrc's output with numpy and zarr-python.

  unpack PACKAGES FOLDER      elevation.npy, brain.npy
  region NPY 'REGION' PART    checks that PART is the region of NPY
  agree NPY STORE PATH        checks that zarr-python reads the same from STORE/PATH
"""
import gzip
import pathlib
import sys

import numpy as np

NIFTI = {2: "u1", 4: "i2", 8: "i4", 16: "f4", 64: "f8", 256: "i1", 512: "u2"}


def nifti(path):
    """The elements of a NIfTI-1 file: 348 bytes of header, then Fortran order."""
    raw = gzip.decompress(path.read_bytes())
    order = "<" if raw[:4] == (348).to_bytes(4, "little") else ">"
    ndim, *shape = np.frombuffer(raw, order + "i2", 8, 40).tolist()
    dtype = order + NIFTI[int(np.frombuffer(raw, order + "i2", 1, 70)[0])]
    start = int(np.frombuffer(raw, order + "f4", 1, 108)[0])
    shape = shape[:ndim]
    return np.frombuffer(raw, dtype, int(np.prod(shape)), start).reshape(shape, order="F")


def unpack(packages, folder):
    packages, folder = pathlib.Path(packages), pathlib.Path(folder)
    dem = next(packages.rglob("jacksboro_fault_dem.npz"))
    np.save(folder / "elevation.npy", np.load(dem)["elevation"])
    t1 = next(packages.rglob("mni_icbm152_t1_tal_nlin_sym_09a_converted.nii.gz"))
    brain = nifti(t1)
    np.save(folder / "brain.npy", brain.transpose(2, 1, 0))  # z, y, x
    for name in ("elevation", "brain"):
        a = np.load(folder / f"{name}.npy", mmap_mode="r")
        print(f"  {name}: {'x'.join(map(str, a.shape))} {a.dtype}, {a.min()} to {a.max()}")


def region(npy, text, part):
    index = tuple(slice(*(int(n) if n else None for n in item.split(":"))) if ":" in item
                  else int(item) for item in text.split(","))
    want, got = np.load(npy)[index], np.load(part)
    same(want, got)
    print(f"  numpy: [{text}] of {pathlib.Path(npy).name} is {got.shape}, every element equal")


def same(want, got):
    if want.shape != got.shape or want.dtype != got.dtype or not np.array_equal(want, got):
        sys.exit("  DIFFERENT")


def agree(npy, store, path):
    import zarr
    group = zarr.open_group(store, mode="r")
    array = group[path]
    same(np.load(npy), array[...])
    shards = f", shards {array.shards}" if array.shards else ""
    print(f"  zarr-python {zarr.__version__}: {path} of format {array.metadata.zarr_format}, chunks "
          f"{array.chunks}{shards}: every element equal")


if __name__ == "__main__":
    {"unpack": unpack, "region": region, "agree": agree}[sys.argv[1]](*sys.argv[2:])
