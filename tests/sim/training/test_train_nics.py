"""``sim train`` on fake NICs: a whole training except for the hardware."""

import json
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest

from host.dlrm.optimizer import Optimizer
from host.placement.shard import Placement, ShardPlan
from host.wire.gradients import gradient_packets
from host.wire.packets import parse_header
from rtl.config import preset
from rtl.formats import DescriptorKind, Opcode
from rtl.nic import SmartNic
from sim.cli.main import main
from sim.job.settings import Runtime
from sim.nic.stalls import CAUSES, TRAINING_CAUSES
from sim.run.report import HIT_RATES
from sim.training.cluster import check_single_copies, check_windows, training_registers
from sim.training.report import failures, table
from sim.training.train import Training, train
from tests.sim.interacting import write_model
from tests.sim.shown import complaints
from tests.sim.training.fake_nics import FakeNics
from tests.sim.training.test_train_model import MODEL, arguments, options, reference

COUNTS = {"local_cache": None, "network": {"packets": 0, "bytes": 0}, "pcie": {"a": 1},
          "node_cycles": {"run": 1}}
"""Fields that only hardware fills; they are null with fake NICs."""


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> str:
    return write_model(tmp_path_factory.mktemp("model") / "small.toml", MODEL)


@pytest.fixture
def nics(monkeypatch):
    monkeypatch.setattr("sim.training.train.NicCluster", FakeNics)
    monkeypatch.setattr(FakeNics, "entries", 9)
    return FakeNics


def trained(path, **changes) -> dict:
    return train(options(path, fidelity="rtl", **changes))


@pytest.mark.parametrize("given", [
    {}, {"optimizer": "rowwise-adagrad", "settings": ("gradient_partials=rounded",)},
    {"settings": ("overtake=true",)}, {"settings": ("local_reduction=false",)}])
def test_it_is_the_reference(path, nics, given):
    result = trained(path, **given)
    model = train(options(path, **given))
    for name in ("loss", "weights_sha256", "predictions_sha256", "intervals", "rows_written"):
        assert result[name] == model[name]
    assert result["bit_identical"] is True and result["complete"] and not failures(result)
    assert result["results"] == {"equal": 150, "different": 0, "refused": 0}
    assert result["spilled"]["global"] > 0
    assert (result["spilled"]["local"] > 0) == ("optimizer" in given)
    assert result["simulated_seconds"] == pytest.approx(4e-9 * result["cycles"])
    assert result["samples_per_second"] == pytest.approx(150 / result["simulated_seconds"])
    assert sum(result["phases_us"].values()) * 5 == pytest.approx(0.004 * result["cycles"])
    assert len(result["latencies_us"]) == 5
    shown = dict(zip(*(column.cells for column in table(result | COUNTS).columns[:2])))
    times = {name.removeprefix("time per step: "): float(str(us).replace(",", ""))
             for name, us in shown.items() if name.startswith("time per step: ")}
    # The exposed all-reduce is shown once.
    assert list(times) == ["lookup", "compute", "update", "exposed all-reduce", "rest"]
    assert sum(times.values()) * 5 == pytest.approx(0.004 * result["cycles"], rel=1e-4)
    assert times["exposed all-reduce"] * 5 == pytest.approx(
        result["all_reduce"]["exposed_us"], abs=0.01)
    assert not [name for name in shown if "all-reduce" in name and "time per step" not in name]
    assert set(HIT_RATES.values()) <= set(shown)
    assert table(result | COUNTS).row_count > 20


def test_stopped_and_continued(path, nics, tmp_path):
    """A checkpoint of NICs also serves the reference and any number of nodes."""
    given = {"optimizer": "rowwise-adagrad", "checkpoint": str(tmp_path / "c.npz")}
    looks = iter([None, None, "SIGINT"])
    first = Training(options(path, fidelity="rtl", **given)).execute(stop=lambda: next(looks))
    assert first["steps"] == 2 and first["bit_identical"]
    second = trained(path, nodes=2, placement="row", **given)
    assert second["first_step"] == 2 and second["complete"] and second["bit_identical"]
    _, _, weights = reference(Optimizer("rowwise-adagrad"))
    assert second["weights_sha256"] == weights


def bad_packets(step: int, node: int) -> dict:
    def packets(table, row, step=step):
        return gradient_packets(np.array([0, table]), np.array([1, row]), np.array([1, 1]),
                                np.ones((2, 16), np.float32), node=node, step=step,
                                payload_beats=24)

    return {(step, node): list(chain(packets(4, 0), packets(1, 3), packets(1, 2, step - 1)))}


def test_messages_that_are_refused_are_listed(path, nics, tmp_path):
    good = trained(path)
    result = Training(options(path, fidelity="rtl")).execute(injected=bad_packets(2, 1))
    assert result["errors"] == [{"node": 1, "step": step, "status": status} for step, status in (
        (2, "TABLE"), (2, "ROW"), (1, "STEP"))]
    assert result["weights_sha256"] == good["weights_sha256"] and result["bit_identical"]
    assert failures(result) == ["3 messages to NICs were refused: 1 for ROW, 1 for STEP, "
                                "1 for TABLE"]


def test_other_packets_go_first(path, nics):
    job = Training(options(path, fidelity="rtl"))
    job.execute(injected=bad_packets(2, 1))
    sent = [parse_header(packet[0]) for packet in job.nics.simulation.cluster.nodes[1].sent]
    third = [head.count for head in sent if head.opcode == Opcode.GRADIENTS and head.step == 2]
    assert third[:2] == [2, 2] and third[-1] == 1


def test_one_wrong_row_is_enough(path, nics, monkeypatch):
    """A single step with wrong rows is found, although its pooled vectors are right."""
    class Other(nics):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.simulation.cluster.optimizer = Optimizer("sgd", 0.2)

    monkeypatch.setattr("sim.training.train.NicCluster", Other)
    result = trained(path, samples=32)
    assert result["results"]["equal"] == 32 and result["bit_identical"] is False


def test_what_is_wrong_is_exit_status_1(path, nics, tmp_path, monkeypatch, capsys):
    class Forgetful(FakeNics):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            memory = self.simulation.cluster.nodes[0].training.memory
            memory._put_rows = lambda keys, beats, values: None

    monkeypatch.setattr("sim.training.train.NicCluster", Forgetful)
    monkeypatch.setattr("sim.training.report._add_nics", lambda shown, result: None)
    checkpoint = tmp_path / "c.npz"
    with pytest.raises(SystemExit) as end:
        given = arguments(path, "--json", tmp_path / "t.json", "--checkpoint", checkpoint,
                          "--set", "local_cache=false")
        given.remove("--reference")
        main(given)
    assert end.value.code == 1
    said = complaints(capsys.readouterr().err)
    assert "rows differ from the numpy reference" in said[0] and "in step 0" in said[0]
    assert "pooled vectors of" in said[1] and len(said) == 2
    assert json.loads((tmp_path / "t.json").read_text())["bit_identical"] is False
    assert not checkpoint.exists()


def test_training_that_is_stuck(path, nics, monkeypatch, tmp_path):
    monkeypatch.setattr(FakeNics, "stuck_after", 700)
    result = trained(path, checkpoint=str(tmp_path / "c.npz"))
    assert not result["complete"] and result["bit_identical"] is False
    assert 0 < result["steps"] < 5 and not (tmp_path / "c.npz").exists()
    line, = failures(result)
    assert line.startswith(f"training is stuck in step {result['steps']}: nothing moves after")


def test_registers():
    config = replace(preset("tiny"), training=True)
    values = training_registers(config, Runtime(gradient_partials="rounded"),
                                Optimizer("rowwise-adagrad", 0.5, 1.0), 4)
    assert values == {"training": 1, "overtake": 0, "local_reduction": 1,
                      "gradient_partials": 1, "optimizer": 1,
                      "learning_rate": 0x3F000000, "epsilon": 0x3F800000, "gradient_timeout": 64,
                      "gradient_window": 56, "gradient_share": 64}


def test_no_node_may_send_more_than_the_others_keep_for_it():
    good = {"gradient_window": 56, "gradient_share": 64}
    check_windows([good, good | {"gradient_window": 64}])
    check_windows([good | {"gradient_share": 9}])
    with pytest.raises(ValueError, match="gradient_window of node 1 must be at most 64, the "
                                         "gradient_share of node 0, not 65"):
        check_windows([good, good | {"gradient_window": 65}])


def test_a_table_has_one_copy():
    plan = ShardPlan(2, (Placement(DescriptorKind.ROW, 9, 0, 2), Placement(
        DescriptorKind.TABLE, 9, 1)))
    assert check_single_copies(plan) is plan
    copied = replace(plan, tables=(*plan.tables, Placement(DescriptorKind.REPLICATED, 9)))
    with pytest.raises(ValueError, match="table 2 must be of kind TABLE or ROW in training, not "
                                         "REPLICATED"):
        check_single_copies(copied)


def test_training_is_no_choice_of_these_nics(path):
    with pytest.raises(ValueError, match="training must be true where NICs train, not false"):
        trained(path, settings=("training=false",))


def test_every_stall_counter_of_training_has_a_cause():
    nic = SmartNic(replace(preset("tiny"), training=True))
    counted = {register.name for register in nic.registers if ".stall_" in register.name}
    # Packagers to the host and of step ends need no credit.
    assert counted - set(CAUSES) - set(TRAINING_CAUSES) == {
        f"{name}_packager.stall_credit" for name in (
            "request", "step", "spill", "row", "state", "state_request", "report")}
    assert counted >= set(TRAINING_CAUSES)


def test_a_bag_that_fits_no_packet_is_named(path, tmp_path):
    data = tmp_path / "bags.txt"
    data.write_text("0:1 1:1\n" + "0:1 " * 505 + "1:1\n")
    given = {"data": str(data), "format": "trace", "model": None, "samples": None,
             "settings": ("hold_vectors=2048", "dedupe_keys=64")}
    with pytest.raises(ValueError, match="bags must have at most 504 keys in training with host_"
                                         "payload_beats of 64, not 505 as in sample 1"):
        trained(path, **given)
    assert train(options(path, **given))["complete"]
