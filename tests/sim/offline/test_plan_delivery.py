"""``sim plan`` of NICs with unique delivery and completions, against runs."""

import numpy as np
import pytest

from host.samples import Samples
from rtl.config import preset
from sim.job.options import RunOptions
from sim.job.settings import Runtime
from sim.job.workload import Workload
from sim.offline.plan import failures, plan
from sim.offline.plan_host import Moved, share_bytes
from sim.offline.plan_packing import Packing
from sim.offline.plan_repeats import first_uses
from sim.run.run import Run
from tests.sim import inputs

ALL_SENT = ("remote_cache=false", "requester_merge=false")
"""With these settings, the plan counts every lookup of another node's row as sent."""

PATIENT = ("lookup_timeout=1500", "request_timeout=4000", "vector_timeout=30000",
           "index_timeout=60000", "local_cache=false")
BOTH = ("deliver=unique", "completions=true")

COUNTED = {
    "lookups": "dedupe.requests", "unique": "dedupe.unique", "misses": "request_packager.records",
    "remote": "lookup_packager.records", "answered": "vector_packager.vectors",
    "slots": "hold_buffer.reserved", "bags": "result_packager.vectors",
    "indices": "index_packager.indices"}


def _run(fidelity: str, *settings: str, **given) -> tuple[dict, dict]:
    """Return the result of a run, and the plan of its workload."""
    options = RunOptions.of(cluster="direct_pair", network="ethernet_100g_switch", threads=1,
                            fidelity=fidelity, settings=(*ALL_SENT, *settings), **given)
    result = Run(options).execute()
    assert result["complete"] and result["bit_identical"] is (True if fidelity == "rtl" else None)
    return result, plan(options.workload)


def _sums(planned: dict, kind: str) -> dict[str, float]:
    """Return the bytes summed over nodes and mini-batches."""
    return {name: round(sum(planned["traffic"][f"{kind}_{name}"]) * planned["mini_batches"], 6)
            for name in ("to_nic", "from_nic", "out", "out_frames")}


def _moved(result: dict) -> dict[str, float]:
    return {"to_nic": result["pcie"]["to_nic_bytes"], "from_nic": result["pcie"]["from_nic_bytes"],
            "out": result["network"]["bytes"], "out_frames": result["network"]["packets"]}


def _exact(result: dict, planned: dict) -> None:
    """Check that every byte and every count equals the run's, at each node."""
    assert result["dedupe"]["retired_early"] == 0
    assert sum(node["host_reporter.credits"] for node in result["counters"]) == 0
    assert _sums(planned, "full") == _sums(planned, "expected") == _moved(result)
    for name, counter in COUNTED.items():
        if name in planned["traffic"]:
            counted = [node[counter] for node in result["counters"]]
            assert np.rint(np.multiply(planned["traffic"][name], planned["mini_batches"])
                           ).tolist() == counted, name


@pytest.mark.parametrize(("fidelity", "settings"), [
    pytest.param("rtl", BOTH, marks=pytest.mark.slow), ("model", BOTH),
    ("model", ("deliver=unique",)), ("model", ("completions=true",)),
    ("model", (*BOTH, "completion_flush=false"))])
def test_equal_to_a_run_whose_packets_are_full(tmp_path, fidelity, settings):
    """Bytes are exact with long timeouts and one mini-batch at a time: bags of any length, and a
    table of repeats that forgets keys."""
    trace = inputs.multi_hot_trace(tmp_path / "bags.txt", 60, longest=9)
    path = tmp_path / "model.toml"
    path.write_text('name = "bags"\nrows = [50, 3000, 1048576, 7]\ndimension = 16\ndense = 1\n'
                    'bottom = [8, 16]\ntop = [8, 1]\n')
    result, planned = _run(
        fidelity, *settings, *PATIENT, "unique_keys=16", "dedupe_keys=512", "request_batch=16",
        config="tiny", model=str(path), nodes=2, data=str(trace), format="trace", mini_batch=4,
        in_flight=1, placement="row")
    _exact(result, planned)
    if "deliver=unique" in settings:
        early = sum(node["delivery.retired_early"] for node in result["counters"])
        assert early > 0 and sum(planned["traffic"]["indices"]) > sum(planned["traffic"]["slots"])


def test_equal_to_a_run_of_kaggle():
    result, planned = _run("model", *BOTH, *PATIENT, config="kaggle", model="kaggle", nodes=4,
                           samples=384, mini_batch=128, in_flight=1)
    _exact(result, planned)


@pytest.mark.parametrize("settings", [
    BOTH, ("deliver=unique",), (*BOTH, "index_timeout=16")])
@pytest.mark.parametrize("config", ["tiny", "kaggle"])
def test_close_to_a_run_with_time_outs(config, settings):
    given = {"tiny": {"nodes": 2, "samples": 128, "mini_batch": 4, "in_flight": 2},
             "kaggle": {"nodes": 4, "samples": 1024, "mini_batch": 128}}[config]
    result, planned = _run("model", *settings, config=config, model="kaggle", **given)
    full, expected, counted = _sums(planned, "full"), _sums(planned, "expected"), _moved(result)
    for name in ("to_nic", "from_nic", "out"):
        assert full[name] <= counted[name], name
        assert expected[name] == pytest.approx(counted[name], rel=0.15), name


def test_pooled_vectors_are_more():
    pooled, unique = (plan(Workload.of(cluster="paper", samples=256, settings=settings))
                      for settings in ((), ("deliver=unique",)))
    for name in ("full_from_nic", "full_out", "lookups"):
        assert sum(unique["traffic"][name]) < 0.9 * sum(pooled["traffic"][name]), name
    more = {row["name"]: row for row in unique["resources"]}
    assert more.keys() - {row["name"] for row in pooled["resources"]} == {"NIC repeats"}
    # 32 samples of 26 keys are a share.
    assert more["NIC repeats"]["least_us"] == pytest.approx(32 * 26 * 0.004)


def test_bytes_by_hand():
    slots, tables = np.array([2, 3, 2]), 2

    def of(*, timed=False, **settings) -> Moved:
        return share_bytes(Packing(preset("tiny"), Runtime(**settings), 2, 16), slots, tables, 5,
                           timed)

    # A header, and 10 records of samples and slots in two beats; a packet per sample of 2 bags.
    assert of() == (64 * (1 + 2), 3 * 64 * (1 + 1 + 2))
    # Two records more, of the end; 5 vectors in a packet, and an index for each of 7 slots.
    assert of(deliver="unique") == (64 * (1 + 2), 64 * (1 + 1 + 5) + 64 * (1 + 1 + 1))
    # They arrive in cycles 0, 1, 3, 4, 5, 7 and 8.
    assert of(deliver="unique", index_timeout=3, timed=True) == (
        64 * (1 + 2), 64 * (1 + 1 + 5) + 3 * 64 * (1 + 1 + 1))
    # Four packets of one record: an opening, a flush, its answer and the word.
    for settings, packets in (({}, 2), ({"completion_flush": False}, 1)):
        more = tuple(np.subtract(of(completions=True, **settings), of()))
        assert more == (64 * 2 * packets,) * 2


def test_first_uses_by_hand():
    """Each node finds repeats in its own share; a table that forgets the oldest keys finds
    fewer."""
    rows = np.array([[5], [6], [5], [5]])
    batch = Samples.one_hot(np.zeros((4, 1)), np.zeros(4), rows)
    tiny = preset("tiny")
    assert first_uses(batch, 1, tiny).tolist() == [0, 1]
    assert first_uses(batch, 2, tiny).tolist() == [0, 1, 2]
    many = np.concatenate((np.arange(400), [0]))[:, None]
    long = Samples.one_hot(np.zeros((401, 1)), np.zeros(401), many)
    assert len(first_uses(long, 1, tiny)) == 401
    assert len(first_uses(long, 1, tiny.with_fields(unique_keys=4096))) == 400


def test_what_it_does_not_take():
    for settings, said in ((("deliver=unique", "unique_keys=0"), "unique_keys must be above 0"),
                           (("deliver=unique", "interaction=true"), "deliver must be pooled")):
        with pytest.raises(ValueError, match=said):
            plan(Workload.of(cluster="paper", samples=8, settings=settings))
    large = plan(Workload.of(cluster="paper", nodes=1, samples=2600, mini_batch=2600,
                             settings=("deliver=unique",)))
    assert failures(large) == ["indices of a node's share must be at most 65,534 (their 16 bits), "
                               "not 67,600"]
