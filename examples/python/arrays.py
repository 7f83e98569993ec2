"""Creates an array, writes and reads parts of it, appends, and reads many rows at once with asyncio."""
import asyncio
import sys

import numpy as np

import zarrc


def create(path: str) -> zarrc.Array:
    array = zarrc.create_array(path, name="climate/temperature", shape=(100, 180, 360), chunks=(10, 90, 90),
                               shards=(100, 180, 360), dtype="float32", fill_value=np.nan,
                               dimension_names=("time", "lat", "lon"), attributes={"units": "K"})
    array[:50] = np.random.default_rng(1).normal(288, 15, (50, 180, 360))
    return array


async def means(array: zarrc.Array) -> list[float]:
    """One request a row: all are in flight together."""
    rows = await asyncio.gather(*[array.async_array.getitem(i) for i in range(50)])
    return [float(row.mean()) for row in rows]


def main(path: str) -> None:
    array = create(path)
    print(array.info)

    # a box into memory that the program has, of any layout
    box = np.empty((10, 20), "float32", order="F")
    array.read((0, slice(10), slice(20)), out=box)

    # each dimension on its own, single elements, and a mask of one dimension
    print(array.oindex[[0, 49], 90, :].shape, array.vindex[[0, 1], [2, 3], [4, 5]].shape)

    array.append(np.zeros((3, 180, 360), "float32"))
    array.attrs["history"] = "3 steps added"
    print(array.shape, array.attrs.asdict())
    print(f"mean of 50 steps: {np.mean(asyncio.run(means(array))):.0f} K")

    with zarrc.open_group(path, mode="r") as root:
        print(root.tree())


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "example.zarr")
