"""Reads and writes with a cluster of two processes: a task for each shard, and no locks between them."""
import logging
import sys

import numpy as np
from distributed import Client, LocalCluster

import zarrc
import zarrc.dask


def main(path: str) -> None:
    group = zarrc.open_group(path, mode="w")
    source = group.create_array("source", data=np.arange(2_000_000, dtype="int32").reshape(1000, 2000), chunks=(50, 50), shards=(500, 500))
    with LocalCluster(n_workers=2, threads_per_worker=2, processes=True, dashboard_address=":0",
                      silence_logs=logging.ERROR) as cluster, Client(cluster):
        x = zarrc.dask.from_zarrc(source)
        print("blocks:", x.numblocks)
        target = zarrc.dask.to_zarrc(x.T * 2, path, name="target", chunks=(50, 50), shards=(250, 1000))
        print("sum of the new array:", int(zarrc.dask.from_zarrc(target).sum(dtype="int64").compute()))
    print("shards:", target.shards, "objects stored:", len([key for key in target.store.list_prefix("target") if "/c/" in key]))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "example.zarr")
