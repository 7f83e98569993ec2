"""Tasks of Ray: one for each shard reads, computes and writes it."""
import logging
import os
import sys

import numpy as np
import ray

import zarrc


def double(source: zarrc.Array, target: zarrc.Array, block: tuple[int, ...]) -> int:
    target.blocks[block] = source.blocks[block] * 2
    return os.getpid()


def main(path: str) -> None:
    group = zarrc.open_group(os.path.abspath(path), mode="w")
    source = group.create_array("source", data=np.arange(1_000_000).reshape(1000, 1000), chunks=(50, 50), shards=(250, 500))
    target = group.create_array("target", shape=source.shape, dtype=source.dtype, chunks=source.chunks, shards=source.shards)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    task = ray.remote(double)
    processes = ray.get([task.remote(source, target, block) for block in np.ndindex(4, 2)])
    print("tasks:", len(processes), "in other processes:", os.getpid() not in processes)
    ray.shutdown()
    print("sum:", int(target[...].sum()), "of", int(source[...].sum()) * 2)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "example.zarr")
