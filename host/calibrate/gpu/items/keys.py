"""What dedupe and updates do with keys of real skew: unique, sort and index_add."""

from collections.abc import Iterator

import numpy as np

from host.calibrate.gpu.device import Device
from host.calibrate.gpu.traffic import mini_batches
from host.calibrate.reading import Reading, number, reading
from host.model import MODELS

__all__ = ["SAMPLES", "keys"]

SAMPLES = (32, 128, 512, 2048)
_SETS = 4
"""Mini-batches of a series."""


def keys(device: Device) -> Iterator[Reading]:
    """Yield times on the keys of mini-batches of Kaggle's model from the generator.

    ``unique`` tells the host how many it found, so that its time is with the wait.
    """
    torch, model = device.torch, MODELS["kaggle"]
    for samples in device.sizes.batches(SAMPLES):
        made = mini_batches(model, samples, _SETS, device.sizes.scale)
        flat = made.joined.reshape(_SETS, -1)
        sets = [device.on_device(each) for each in flat]
        found, groups = zip(*(np.unique(each, return_inverse=True) for each in flat))
        name = f"keys.{samples}x{model.tables}"
        yield number(f"{name}.unique_share", float(np.mean([len(f) for f in found]))
                     / flat.shape[1], "unique keys of a mini-batch, of all", "")
        turns = iter(range(1 << 30))
        yield reading(f"{name}.unique_us", device.times(
            lambda: torch.unique(sets[next(turns) % _SETS], return_inverse=True)),
            "unique with the inverse, and the wait for it")
        yield reading(f"{name}.sort_us", device.gpu([
            lambda each=each: torch.sort(each) for each in sets]), "sort of int64 with positions, "
            "in a graph")
        gradients = device.floats(flat.shape[1], model.dimension)
        sums = device.floats(max(map(len, found)), model.dimension)
        where = [device.on_device(np.ascontiguousarray(each.reshape(-1), np.int64))
                 for each in groups]
        yield reading(f"{name}.index_add_us", device.gpu([
            lambda each=each: sums.index_add_(0, each, gradients) for each in where]),
            "gradients of 64 B added to those of their unique keys, in a graph")
        table = device.floats(sum(made.rows), model.dimension)
        yield reading(f"{name}.update_us", device.gpu([
            lambda each=each: table.index_add_(0, each, gradients, alpha=-0.1)
            for each in sets], cold=True), "gradients of 64 B added to rows of the tables, cold")
