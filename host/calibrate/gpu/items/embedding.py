"""The embedding stage of a DLRM as one kernel for all tables, by itself, on skewed keys."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from host.calibrate.gpu.device import Device
from host.calibrate.gpu.driver import Word
from host.calibrate.gpu.items.gather import BLOCK, grid_of
from host.calibrate.gpu.traffic import mini_batches
from host.calibrate.reading import Absent, Missing, Reading, reading
from host.model import MODELS

__all__ = ["DIMENSIONS", "SAMPLES", "embedding"]

SAMPLES = (8, 32, 128, 512, 2048)
DIMENSIONS = (16, 64)
_SETS = 8
"""Mini-batches of a series."""


def embedding(device: Device) -> Iterator[Reading | Absent]:
    """Yield the time of the lookups of a mini-batch of Kaggle's tables, with 16 and 64 dimensions.

    By the project's own fused kernel, and by PyTorch's ``embedding_bag``: once for one table that
    holds all, and once for each of 26 tables. Each mini-batch of a series has other keys.
    """
    for dimension in DIMENSIONS:
        yield from _joined(device, dimension)
    yield _apart(device)


def _joined(device: Device, dimension: int) -> Iterator[Reading | Absent]:
    """Yield the times with one table that holds the rows of all."""
    torch, bag = device.torch, device.torch.nn.functional.embedding_bag
    model = replace(MODELS["kaggle"], dimension=dimension, bottom=(dimension,))
    batches = {count: mini_batches(model, count, _SETS, device.sizes.scale)
               for count in device.sizes.batches(SAMPLES)}
    table = device.floats(sum(batches[SAMPLES[0]].rows), dimension)
    first = device.on_device(batches[SAMPLES[0]].first)
    for samples, made in batches.items():
        bags = samples * model.tables
        out = device.floats(bags, dimension)
        keys = [device.on_device(each.reshape(-1)) for each in made.keys]
        joined = [device.on_device(each.reshape(-1)) for each in made.joined]
        offsets = device.on_device(np.arange(bags + 1, dtype=np.int32))
        starts = torch.arange(0, bags, device=device.kind)
        name = f"embedding.{samples}x{model.tables}x{4 * dimension}B"
        try:
            kernels = [device.kernel(
                "embedding", "embedding", grid_of(bags * dimension // 4), BLOCK,
                table.data_ptr(), first.data_ptr(), each.data_ptr(), offsets.data_ptr(),
                out.data_ptr(), Word(bags), Word(model.tables), Word(dimension // 4))
                for each in keys]
            for cold in (False, True):
                yield reading(f"{name}.kernel.{'cold' if cold else 'warm'}_us",
                              device.gpu(kernels, cold), "one kernel for all tables, in a series "
                              f"of {_SETS} mini-batches, rows {'not ' if cold else ''}read just "
                              "before")
        except Missing as missing:
            yield Absent("embedding.kernel", str(missing))
        yield reading(f"{name}.bag.warm_us", device.gpu([
            lambda each=each: bag(each, table, starts, mode="sum") for each in joined]),
            "PyTorch's embedding_bag on one table that holds all")


def _apart(device: Device) -> Reading:
    """Return the time with a lookup for each table."""
    samples, made = 128, mini_batches(MODELS["kaggle"], 128, 1, device.sizes.scale)
    tables = [device.floats(size, 16) for size in made.rows]
    starts = device.torch.arange(0, samples, device=device.kind)
    columns = [device.on_device(np.ascontiguousarray(made.keys[0, :, table]))
               for table in range(len(tables))]
    return reading(f"embedding.{samples}x{len(tables)}x64B.tables.warm_us", [
        us * len(tables) for us in device.gpu([
            lambda keys=keys, table=table: device.torch.nn.functional.embedding_bag(
                keys, table, starts, mode="sum") for keys, table in zip(columns, tables)])],
        "PyTorch's embedding_bag for each table, all in one graph")
