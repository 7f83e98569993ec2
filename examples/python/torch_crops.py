"""Random crops for a training loop: a batch is one request, and forked or spawned workers give the same crops. Where torch
has a GPU, batches are read into its memory."""
import sys

import numpy as np
import torch
from torch.utils.data import DataLoader

import zarrc
import zarrc.torch


def main(path: str) -> None:
    image = np.arange(1024 * 1024, dtype="float32").reshape(1024, 1024)
    zarrc.create_array(path, data=image, chunks=(64, 64), shards=(512, 512), overwrite=True)
    crops = zarrc.torch.Crops(path, (128, 128), n=64, seed=7)
    stream = zarrc.torch.CropStream(path, (128, 128), n=64, batch_size=16, seed=7)
    for workers, context in ((0, None), (2, "fork"), (2, "spawn")):
        loader = DataLoader(crops, batch_size=16, num_workers=workers, multiprocessing_context=context)
        means = [round(batch.double().mean().item()) for batch in loader]
        print(f"{context or 'no workers'}: {means}")
    batches = DataLoader(stream, batch_size=None, num_workers=2)
    print("stream: the same:", [round(batch.double().mean().item()) for batch in batches] == means)

    device = "cuda" if torch.cuda.is_available() else "cpu"
    fast = zarrc.torch.CropStream(path, (128, 128), n=64, batch_size=64, seed=7, device=device)
    for batch in DataLoader(fast, batch_size=None):  # 64 crops by one read, in memory of the device
        print(f"one tensor: {tuple(batch.shape)}, the same:", round(batch.double().mean().item()) == round(sum(means) / 4))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "example.zarr")
