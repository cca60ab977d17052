"""EN's kernel behind the NIC's answer: vectors expanded, bags pooled, interaction; one for all."""

from collections.abc import Iterator

import numpy as np

from host.calibrate.gpu.device import Device
from host.calibrate.gpu.driver import Word
from host.calibrate.gpu.traffic import mini_batches
from host.calibrate.reading import Reading, reading
from host.model import MODELS

__all__ = ["BLOCK", "SAMPLES", "expand"]

SAMPLES = (32, 128, 512, 2048)
BLOCK = 128
_SETS = 8
"""Mini-batches of a series."""


def expand(device: Device) -> Iterator[Reading]:
    """Yield the time of the kernel on mini-batches of Kaggle's and Terabyte's tables, in a graph.

    A mini-batch whose different vectors are more than 16 bits can name is left out.
    """
    for model in (MODELS["kaggle"], MODELS["terabyte"]):
        for samples in device.sizes.batches(SAMPLES):
            made = mini_batches(model, samples, _SETS, device.sizes.scale)
            found = [np.unique(each.reshape(-1), return_inverse=True) for each in made.joined]
            most = max(len(keys) for keys, _ in found)
            if most > 1 << 16:
                continue
            vectors = device.floats(most, model.dimension)
            dense = device.floats(samples, model.dimension)
            out = device.floats(samples, model.interaction_width)
            index = [device.on_device(where.reshape(-1).astype(np.uint16).view(np.int16))
                     for _, where in found]
            kernels = [device.kernel(
                "expand", "expand", samples, BLOCK, vectors.data_ptr(), each.data_ptr(),
                dense.data_ptr(), out.data_ptr(), Word(samples), Word(model.tables), Word(1),
                Word(model.dimension // 4)) for each in index]
            yield reading(f"expand.{model.name}.{samples}_us", device.gpu(kernels),
                          f"{samples} samples of {model.tables} tables, about "
                          f"{int(np.mean([len(keys) for keys, _ in found]))} different vectors of "
                          f"{4 * model.dimension} B; expanded and interacted, in a graph")
