"""200 steps on NICs: rows equal the numpy reference, and losses equal PyTorch's.

The same from the command line: python -m sim train --config kaggle --nodes 4 --mini-batch 128
--samples 25600 --optimizer rowwise-adagrad --learning-rate 0.02 [--data ratings.csv --format
movielens] --json FILE.
"""

from itertools import chain

import numpy as np
import pytest

import host.dlrm.dense_trainer
from host.dlrm.dense_trainer import DenseTrainer
from host.samples import Samples, concatenate
from sim.training.options import TrainOptions
from sim.training.report import failures
from sim.training.train import Training
from tests.optional import absent

pytest.importorskip("torch", reason=absent("torch"))
from tests.host.dlrm.torch_dlrm import TorchDlrm

STEPS, COMPARED, MINI_BATCH = 200, 50, 128
OPTIMIZERS = {"sgd": 0.1, "rowwise-adagrad": 0.02}


class Seen:
    """Samples and active ReLUs of each step of a training."""

    def __init__(self, patch: pytest.MonkeyPatch):
        self.samples: list[Samples] = []
        self.gates: list[list[np.ndarray]] = []
        activations, begin = host.dlrm.dense_trainer.activations, DenseTrainer.begin

        def begun(trainer: DenseTrainer, samples: Samples) -> np.ndarray:
            self.samples.append(samples)
            self.gates.append([])
            return begin(trainer, samples)

        def computed(inputs, layers, linear, last_relu=True):
            values = activations(inputs, layers, linear, last_relu)
            self.gates[-1] += [layer > 0 for layer in values[1:None if last_relu else -1]]
            return values

        patch.setattr(host.dlrm.dense_trainer, "activations", computed)
        patch.setattr(DenseTrainer, "begin", begun)


def options_of(optimizer: str, data: str | None, steps: int = STEPS, **changes) -> TrainOptions:
    given = {} if data is None else {"data": data, "format": "movielens"}
    return TrainOptions.of(config="kaggle", nodes=4, mini_batch=MINI_BATCH, threads=2,
                           samples=steps * MINI_BATCH, optimizer=optimizer,
                           learning_rate=OPTIMIZERS[optimizer], **given, **changes)


def check(options: TrainOptions, seen: Seen) -> dict:
    """Train; compare the losses with PyTorch's, with the same side at a kink of a ReLU."""
    training = Training(options)
    result = training.execute()
    assert failures(result) == [] and result["complete"]
    samples, gates = seen.samples[:COMPARED], seen.gates[:COMPARED]
    theirs = TorchDlrm(training.model, options.run.workload.seed, options.learning.rule,
                       samples=concatenate(samples))
    expected = [theirs.step(part, iter(own)) for part, own in zip(samples, gates, strict=True)]
    apart = np.abs(np.array(result["loss"][:COMPARED]) / expected - 1)
    print(f"{training.model.name}, {options.learning.optimizer}: losses of {len(apart)} steps "
          f"are within {apart.max():.2g} of PyTorch's; {theirs.sided} of "
          f"{sum(map(np.size, chain(*gates)))} gates at a kink")
    assert len(apart) == COMPARED and apart.max() < 1e-5
    # Few of millions; many would make the comparison meaningless.
    assert theirs.sided <= 10
    return result


@pytest.mark.few(1)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_reference(monkeypatch, optimizer):
    """kaggle's own tables and MLPs."""
    check(options_of(optimizer, None, COMPARED, fidelity="model"), Seen(monkeypatch))


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("data", ["generated", "movielens"])
def test_nics(monkeypatch, request, optimizer, data):
    file = str(request.getfixturevalue("ratings")) if data == "movielens" else None
    result = check(options_of(optimizer, file), Seen(monkeypatch))
    assert result["steps"] == STEPS and result["bit_identical"]
    assert result["rows_compared"]["rows"] > STEPS * MINI_BATCH // 2
    assert result["rows_compared"]["different"] == result["rows_compared"]["extra"] == 0
