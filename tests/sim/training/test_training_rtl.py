"""``sim train`` on compiled NICs: the rows of the reference, bit for bit, whatever the cluster.

One build serves them all; it is one more than `make test` has time for.
"""

from itertools import chain

import numpy as np
import pytest

from host.batching import Batcher, algorithm_of
from host.model import Model
from host.placement.shard import ShardPlan
from host.wire.gradients import gradient_packets
from host.wire.packets import parse_headers
from rtl.config import preset
from rtl.formats import Opcode
from sim.evaluation.workloads import updates
from sim.job.inputs import SampleSource
from sim.job.workload import Workload
from sim.training.options import TrainOptions
from sim.training.report import failures
from sim.training.train import Training, train
from tests.sim.interacting import write_model

pytestmark = pytest.mark.slow

ROWS = (50, 3, 4000, 70, 1 << 20)
BAGS = ((1, 3), (1, 1), (0, 5), (2, 2), (0, 9))
ADAGRAD = {"optimizer": "rowwise-adagrad", "learning_rate": 0.05}
RINGS = {"settings": ("gpu_rings=true",)}
ROUNDED = {"settings": ("gradient_partials=rounded",)}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Writes a model of vectors of some dimension; a mini-batch of it exceeds every table."""
    folder = tmp_path_factory.mktemp("models")

    def written(dimension: int = 16) -> str:
        return write_model(folder / f"{dimension}.toml", Model(
            ROWS, dimension, 3, (8, dimension), (4, 1), "small", BAGS))

    return written


def options(path, **changes) -> TrainOptions:
    return TrainOptions.of(**{"config": "tiny", "model": path, "nodes": 2, "samples": 150,
                              "mini_batch": 32, "threads": 1, "placement": "row", **changes})


def good(result: dict, path, **changes) -> dict:
    assert failures(result) == [] and result["complete"] and result["bit_identical"]
    expected = train(options(path, fidelity="model", **changes))
    for name in ("weights_sha256", "loss", "predictions_sha256", "rows_written"):
        assert result[name] == expected[name]
    return result


@pytest.mark.parametrize(("dimension", "changes"), [
    (16, {}), (16, ADAGRAD), (16, ROUNDED), (16, ADAGRAD | ROUNDED | {"nodes": 4}),
    (16, ADAGRAD | {"nodes": 8, "mini_batch": 21}), (16, ADAGRAD | {"nodes": 1}),
    (4, ADAGRAD), (8, ROUNDED), (64, ADAGRAD), (48, ADAGRAD | {"settings": ("pooling=mean",)}),
    (16, ADAGRAD | {"settings": ("local_cache=false", "dedupe=false")}),
    (16, ROUNDED | {"mini_batch": 150, "nodes": 3}), (16, {"placement": "even", "epochs": 3}),
    (16, ADAGRAD | {"settings": ("requester_merge=false", "gradient_timeout=0")}),
    (16, ADAGRAD | {"settings": ("overtake=true",), "nodes": 3}),
    (16, ADAGRAD | {"settings": ("overtake=true", "deliver=unique", "completions=true")}),
    (16, RINGS), (16, ADAGRAD | RINGS | {"nodes": 3}),
    (16, ADAGRAD | {"nodes": 3, "settings": ("row_reads=true",)}),
    (16, ADAGRAD | {"nodes": 3, "settings": (
        *RINGS["settings"], "deliver=unique", "completions=true", "output_queues=true")}),
])
def test_rows_are_those_of_the_reference(model, dimension, changes):
    path = model(dimension)
    result = good(train(options(path, **changes)), path, **changes)
    rounded = "gradient_partials=rounded" in changes.get("settings", ())
    assert (result["spilled"]["local"] > 0) == rounded
    assert len(result["backward"]) == result["nodes"]
    assert 0 < result["update_misses"] <= result["rows_compared"]["rows"]
    assert result["counters"][0]["step_barrier.steps"] == result["steps"]
    rings = RINGS["settings"][0] in changes.get("settings", ())
    assert (result["counters"][0]["gpu_rings.slots"] > 0) == rings


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("sets", [1, 5, 8])
def test_rows_that_caches_have_lost_are_those_of_the_accesses(model, nodes, sets):
    given = {"nodes": nodes, "samples": 128, "placement": "row"}
    ran = train(options(model(), **given, settings=(f"local_cache_sets={sets}",)))
    like = Workload(config="tiny", model=model(), mini_batch=32, **given)
    source = SampleSource.of(like)
    batches = tuple(Batcher(algorithm_of("file"), 32, None).form(source.chunks()))
    ways = preset("tiny").local_cache_ways
    found = updates(batches, range(len(batches)), ShardPlan.deal(source.model, nodes, "row"),
                    sets * ways, ways).to_json()
    assert 0 < ran["update_misses"] == pytest.approx(found["misses"] * len(batches))
    assert ran["rows_compared"]["rows"] == pytest.approx(found["rows"] * len(batches))


def test_without_local_reduction_more_is_sent(model):
    """Sums are exact whatever ``gradient_partials`` is."""
    path, frames = model(), []
    job = Training(options(path, settings=("local_reduction=false", "gradient_partials=rounded")))
    apart = job.execute(observer=lambda news: frames.extend(frame for *_, frame in news))
    together = good(train(options(path)), path)
    assert good(apart, path)["spilled"]["local"] == 0
    for more, less in zip(apart["backward"], together["backward"], strict=True):
        assert all(more[count] > less[count] > 0 for count in ("partials", "beats", "bytes"))
        assert more["packets"] >= less["packets"] > 0  # mostly closed by time
    for node, sent in enumerate(apart["backward"]):
        mine = [frame for frame in frames for head in parse_headers(frame[:1])
                if head.opcode == Opcode.PARTIALS and head.source == node]
        assert sent["packets"] == len(mine)
        assert sent["beats"] == sum(len(frame) - 1 for frame in mine)
        assert sent["bytes"] == sum(22 + 64 * (len(frame) - 1) for frame in mine)


def test_threads_and_idle_cycles_change_nothing(model):
    results = [train(options(model(), nodes=3, **changes)) for changes in (
        {}, {"threads": 3}, {"skip": False})]
    for name in ("cycles", "counters", "weights_sha256", "latencies_us", "network", "pcie",
                 "phases_us"):
        assert results[0][name] == results[1][name] == results[2][name]


def test_stopped_and_continued(model, tmp_path):
    path, given = model(), ADAGRAD | {"checkpoint": str(tmp_path / "c.npz")}
    looks = iter([None, None, "SIGTERM"])
    first = Training(options(path, **given)).execute(stop=lambda: next(looks))
    assert first["interrupted"] == "SIGTERM" and first["steps"] == 2
    second = train(options(path, nodes=3, **given))
    assert second["bit_identical"] and second["first_step"] == 2
    whole = train(options(path, fidelity="model", **ADAGRAD))
    assert second["weights_sha256"] == whole["weights_sha256"]
    assert first["loss"] + second["loss"] == whole["loss"]


def test_bad_messages_are_dropped_and_listed(model):
    def packets(table, row, step):
        return gradient_packets(np.array([0, table]), np.array([1, row]), np.array([1, 1]),
                                np.ones((2, 16), np.float32), node=1, step=step, payload_beats=24)

    whole, = packets(1, 1, 1)
    bad = [*chain(packets(9, 0, 1), packets(1, 3, 1), packets(1, 2, 0)), whole[:-1],
           np.concatenate((whole, np.zeros((3, 16), np.uint32))), *packets(1, 2, 2)]
    path = model()
    result = Training(options(path)).execute(injected={(1, 1): bad})
    assert sorted((error["step"], error["status"]) for error in result["errors"]) == [
        (0, "STEP"), (1, "LENGTH"), (1, "LENGTH"), (1, "ROW"), (1, "TABLE"), (2, "STEP")]
    assert {error["node"] for error in result["errors"]} == {1}
    assert [node["gradient_check.dropped"] for node in result["counters"]] == [0, 6]
    assert result["bit_identical"]
    assert failures(result) == ["6 messages to NICs were refused: 2 for LENGTH, 1 for ROW, "
                                "2 for STEP, 1 for TABLE"]


@pytest.mark.parametrize("part", ["gpu", "host", "network"])
def test_silence_changes_no_row_and_for_good_is_named(model, part):
    path = model()
    good(train(options(path, faults=f"silent-{part}=100us:200us@1")), path)
    result = train(options(path, faults=f"silent-{part}=100us:@1", patience=50_000))
    assert not result["complete"] and result["steps"] < 5
    said, = failures(result)
    assert said.startswith(f"training is stuck in step {result['steps']}: ")
    assert result["where_stuck"]["causes"][0]["part"] == part


def test_frames_of_training_are_seen(model):
    opcodes = set()

    def observer(frames):
        for _, _, frame in frames:
            opcodes.update(head.opcode for head in parse_headers(frame[:1]))

    Training(options(model(), samples=32)).execute(observer=observer)
    assert opcodes >= {Opcode.LOOKUPS, Opcode.VECTORS, Opcode.PARTIALS, Opcode.STEPS}
