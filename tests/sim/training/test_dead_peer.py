"""Training with a dead peer: both sides of the dead links continue with their own rows."""

from itertools import pairwise

import numpy as np
import pytest

from host.dlrm.dlrm import pool
from host.dlrm.embedding import EmbeddingTables
from host.samples import KEY_ROW_BITS, Samples
from rtl.formats import Status
from sim.job.inputs import SampleSource
from sim.training.train import Training
from tests.sim.training.compiled_nics import NIC, options, write

LINK = ("link=true", "link_tries=3", "link_timeout_first=500", "link_timeout_most=2000",
        "link_probe_after=1000")
MODES = {
    "sums": {}, "adagrad": {"optimizer": "rowwise-adagrad", "learning_rate": 0.2},
    "overtake": {"settings": ("overtake=true",)},
    "unique": {"settings": ("deliver=unique", "completions=true")}}
SAMPLES = 96


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> str:
    return write(tmp_path_factory.mktemp("model"))


class Side:
    """Reference of the ``nodes`` on a side; rows of the other nodes read as zeros."""

    def __init__(self, training: Training, nodes: range):
        nics, workload = training.nics, training.options.run.workload
        self.nodes, self._cluster = nodes, nics.simulation.cluster
        self._plan = SampleSource.of(workload).plan()
        self.tables = EmbeddingTables(training.model, workload.seed,
                                      training.options.learning.rule)

    def _own(self, keys: np.ndarray) -> np.ndarray:
        owners = self._plan.owner_of(keys >> KEY_ROW_BITS, keys & (1 << KEY_ROW_BITS) - 1)
        return np.isin(owners, self.nodes)

    def step(self, step, samples: Samples, gradients: np.ndarray) -> int:
        """Check the answers of a step, follow its gradients; return the lost samples."""
        share = slice(step.shares[self.nodes.start], step.shares[self.nodes.stop])
        samples, model = samples.slice(share.start, share.stop), self.tables.rows.model
        vectors, _ = self.tables.rows.read(samples.keys)
        own = self._own(samples.keys)
        pooled = pool(np.where(own[:, None], vectors, np.float32(0)),
                      samples.bag_lengths.reshape(-1), model.pooling)
        assert pooled.tobytes() == np.ascontiguousarray(step.answers[share]).tobytes()
        ends = samples.key_offsets
        lost = np.array([not own[first:last].all() for first, last in pairwise(ends)])
        assert (step.status[share] == np.where(lost, Status.PEER, 0)).all()
        self.tables.update(samples, gradients[share])
        return int(lost.sum())

    def check_rows(self) -> int:
        """Compare the rows that the nodes wrote; return their number."""
        wanted = self.tables.rows.written()[0]
        wanted = wanted[self._own(wanted)]
        stores = [self._cluster.nodes[node].training.memory.store for node in self.nodes]
        assert sorted(key for store in stores for key in store.written()[0]) == list(wanted)
        for store in stores:
            keys, vectors, states = store.written()
            expected = self.tables.rows.read(keys)
            assert vectors.tobytes() == expected[0].tobytes()
            assert states.tobytes() == expected[1].tobytes()
        return len(wanted)


def _train(path: str, nodes: int, faults: str | None, **given) -> tuple[Training, dict, list]:
    """Train; return the training, its result, and each step with its samples and gradients.

    The last node owns a table that many samples do not use.
    """
    training = Training(options(
        path, **{"nodes": nodes, "samples": SAMPLES, "mini_batch": 4 * nodes, "compare": False,
                 "placement": f"0,1,{nodes - 1},0", "faults": faults, **given,
                 "nic": (*NIC, *LINK)}))
    tables, steps = training.nics.tables, []
    update = tables.update
    tables.update = lambda samples, gradients: (
        steps.append((tables.step, samples, gradients)), update(samples, gradients))[1]
    result = training.execute()
    assert result["complete"] and result["stuck"] is None
    return training, result, steps


def _survive(path: str, nodes: int, **given) -> None:
    calm = _train(path, nodes, None, **given)[1]
    training, result, steps = _train(path, nodes, f"down=0us:1s@{nodes - 1}", **given)
    sides = [Side(training, range(nodes - 1)), Side(training, range(nodes - 1, nodes))]
    lost = [sum(side.step(*step) for step in steps) for side in sides]
    rows = [side.check_rows() for side in sides]
    assert all(rows) and 0 < sum(lost) < SAMPLES
    assert {error["status"] for error in result["errors"]} == {"PEER"}
    print(f"{nodes} nodes {given}: {result['cycles']} cycles, calm {calm['cycles']}; "
          f"{sum(lost)} of {SAMPLES} samples lost, {rows} rows equal")


@pytest.mark.slow
@pytest.mark.parametrize("given", MODES.values(), ids=MODES)
@pytest.mark.parametrize("nodes", [3, 4, 8])
def test_both_sides_train_on(path, nodes, given):
    _survive(path, nodes, **given)


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [3, 4, 8])
def test_a_peer_that_dies_at_any_time_is_noticed(path, nodes):
    for start in (40, 80, 120):
        _train(path, nodes, f"down={start}us:1s@{nodes - 1}")
