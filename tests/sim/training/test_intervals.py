"""Intervals of a training store only the data of their report, independent of the model's size."""

import gc
import weakref

import numpy as np
import pytest

from host.data.generator import generate
from host.dlrm.trainer import reference_trainer
from host.model import Model
from host.samples import rechunk
from sim.training.intervals import Intervals

MODEL = Model((50, 20), 16, 3, (16,), (4, 1))


@pytest.mark.thorough
def test_a_step_is_not_kept():
    intervals, trainer = Intervals(3), reference_trainer(MODEL, 1)
    samples, = rechunk(generate(MODEL, 12, 2), 12)
    step = trainer.step(samples)
    kept = weakref.ref(step.gradients)
    assert intervals.add(0, 0, samples, step) is None
    del step
    gc.collect()
    assert kept() is None
    row = intervals.close()
    assert row is not None and row["samples"] == 12 and np.isfinite(row["loss"])
