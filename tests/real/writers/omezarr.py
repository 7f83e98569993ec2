"""Pyramids and labels of ome-zarr: OME-NGFF 0.4 (v2) and 0.5 (v3), as folders and as zip archives."""
import importlib.metadata
import pathlib

import numpy as np
import zarr
from ome_zarr.format import FormatV04, FormatV05
from ome_zarr.writer import write_image, write_labels

from keep import keep, place, walk

WRITER = f"ome-zarr {importlib.metadata.version('ome-zarr')}, zarr-python {zarr.__version__}"
RNG = np.random.default_rng(6)


def write(store, fmt):
    root = zarr.open_group(store, mode="w", zarr_format=fmt.zarr_format)
    image = RNG.integers(0, 2**12, (2, 3, 90, 70)).astype("u2")
    write_image(image, root, axes="czyx", fmt=fmt, storage_options={"chunks": (1, 2, 40, 40)})
    write_labels((image[0] > 3000).astype("u1"), root, name="cells", axes="zyx", fmt=fmt,
                 storage_options={"chunks": (2, 40, 40)})


for version, kind in (("0.4", FormatV04), ("0.5", FormatV05)):
    name = f"image-{version}.zarr"
    folder = place(name)
    write(folder, kind())
    keep(name, WRITER, walk(zarr.open_group(folder, mode="r", use_consolidated=False)))
    archive = pathlib.Path(place(f"{name}.zip"))
    archive.unlink(missing_ok=True)
    with zarr.storage.ZipStore(archive, mode="w") as store:
        write(store, kind())
    with zarr.storage.ZipStore(archive, mode="r") as store:
        keep(archive.name, WRITER, walk(zarr.open_group(store, mode="r", use_consolidated=False)))
