"""Clusters whose NICs deliver unique vectors and completions give the answers of numpy's model."""

import numpy as np
import pytest

from host.model import MODELS
from host.placement.shard import ShardPlan
from host.wire.indices import pooled_instead
from host.wire.packets import parse_header
from rtl.formats import Opcode, TableDescriptor
from sim import api
from sim.job.options import RunOptions
from sim.node.node import Node
from sim.run.report import failures, table
from sim.run.run import Run
from tests.sim import inputs
from tests.sim.run.engines import on_both_engines
from tests.sim.run.results import faultless

DELIVERIES = {
    "pooled": (), "unique": ("deliver=unique",), "completions": ("completions=true",),
    "both": ("deliver=unique", "completions=true"),
    "no flush": ("deliver=unique", "completions=true", "completion_flush=false")}
BAD = ("refused", "refusals_lost", "bad_flushed", "bad_freed", "timeouts", "errors",
       "stray_answers", "excess_answers", "stray_errors")


def _run(*settings: str, **options) -> Run:
    given = {"config": "tiny", "samples": 96, "mini_batch": 16, "nodes": 2, "threads": 1}
    return Run(RunOptions.of(settings=settings, **given | options))


def _good(job: Run) -> dict:
    result = faultless(job.execute())
    for name in BAD if result["config"]["runtime"]["completions"] else ():
        assert not any(_counts(result, f"completion_writer.{name}")), name
    return result


def _counts(result: dict, name: str) -> list[int]:
    return [counters[name] for counters in result["counters"]]


@pytest.mark.thorough
@pytest.mark.parametrize("options", [
    {"in_flight": 1}, {"in_flight": 16, "mini_batch": 5, "samples": 200}])
def test_every_delivery_gives_the_same_predictions(options):
    """The ring wraps, and a mini-batch of five has a share of two."""
    results = {name: _good(_run(*settings, **options)) for name, settings in DELIVERIES.items()}
    assert len({result["predictions_sha256"] for result in results.values()}) == 1
    steps = options.get("samples", 96) // options.get("mini_batch", 16)
    for name, result in results.items():
        completed = steps if name in ("completions", "both", "no flush") else 0
        for counter, count in (("opened", completed), ("completed", completed),
                               ("flushes", 0 if name == "no flush" else completed)):
            assert _counts(result, f"completion_writer.{counter}") == [count] * 2
        # The end of a share is a slot without an index.
        slots, indices = (_counts(result, counter) for counter in (
            "delivery.slots", "index_packager.indices"))
        unique = "deliver=unique" in DELIVERIES[name]
        assert sum(indices) == (result["lookups"] if unique else 0)
        assert slots == [count + steps if unique else 0 for count in indices]


@pytest.mark.parametrize("dimension", [4, 16, 48])
@pytest.mark.parametrize("pooling", ["sum", "mean"])
def test_bags_whose_keys_exceed_the_table_of_repeats(tmp_path, dimension, pooling):
    """Keys that the table has forgotten are sent again, with another index."""
    trace = inputs.multi_hot_trace(tmp_path / "bags.txt", 60, longest=12)
    model = tmp_path / "model.toml"
    model.write_text(
        f'name = "d{dimension}"\nrows = [50, 3000, 1048576, 7]\ndimension = {dimension}\n'
        f'dense = 1\nbottom = [8, {dimension}]\ntop = [8, 1]\n')
    results = [_good(_run(*settings, f"pooling={pooling}", data=str(trace), format="trace",
                          model=str(model), mini_batch=30))
               for settings in ((), ("deliver=unique", "completions=true"))]
    assert results[0]["predictions_sha256"] == results[1]["predictions_sha256"]
    assert sum(_counts(results[1], "delivery.retired_early")) > 0


@pytest.mark.thorough
@pytest.mark.usefixtures("python_hosts")
def test_hosts_in_python():
    results = [_good(_run(*DELIVERIES[name])) for name in ("pooled", "both")]
    assert results[0]["predictions_sha256"] == results[1]["predictions_sha256"]


@pytest.mark.few(1, "thorough")
@pytest.mark.parametrize("name", ["unique", "both", "completions"])
def test_refused_samples(monkeypatch, name):
    """Rejected samples have no index, and their step is completed with their status."""
    full = ShardPlan.descriptors

    def fewer_rows(plan: ShardPlan) -> np.ndarray:
        words = full(plan)
        words[2, TableDescriptor["rows_low"].offset // 32] = MODELS["kaggle"].rows[2] * 9 // 10
        return words

    monkeypatch.setattr(ShardPlan, "descriptors", fewer_rows)
    result = _run(*DELIVERIES[name]).execute()
    assert result["complete"] and not result["results"]["different"]
    assert 0 < result["results"]["refused"] == result["errors"] < 96
    assert result["results"]["equal"] == 96 - result["results"]["refused"]
    if name != "unique":
        assert 0 < sum(_counts(result, "completion_writer.errors")) <= 2 * 6


@pytest.mark.parametrize("name", ["both", "completions"])
def test_steps_that_are_late(name):
    """A timeout ends a step without its answers; late answers are ignored."""
    job = _run(*DELIVERIES[name], "step_timeout=900", in_flight=4)
    result = job.execute()
    refused = result["results"]["refused"]
    assert result["complete"] and not result["results"]["different"] and not result["errors"]
    assert refused and result["results"]["equal"] == 96 - refused
    assert sum(_counts(result, "completion_writer.timeouts")) > 0


@pytest.mark.thorough
@pytest.mark.parametrize("part", ["host", "gpu", "network"])
def test_a_part_that_falls_silent_for_a_while(part):
    result = _good(_run(*DELIVERIES["both"], faults=f"silent-{part}=6us:30us@1"))
    assert result["predictions_sha256"] == _good(_run())["predictions_sha256"]


@pytest.mark.thorough
@pytest.mark.usefixtures("python_hosts")
@pytest.mark.parametrize("timeout", [0, 300_000])
def test_flushes_without_an_answer(monkeypatch, timeout):
    """The run stops with a message, or each step is completed by its timeout with all answers."""
    send = Node._send

    def without_flushed(node: Node, packet: np.ndarray, now: float) -> None:
        if parse_header(packet[0]).opcode != Opcode.FLUSHED:
            send(node, packet, now)

    monkeypatch.setattr(Node, "_send", without_flushed)
    result = _run(*DELIVERIES["both"], f"step_timeout={timeout}", samples=32).execute()
    assert result["complete"] == bool(timeout)
    if timeout:
        assert failures(result) == [] and result["results"]["equal"] == 32
        assert _counts(result, "completion_writer.completed") == [2, 2]
        assert result["cycles"] > timeout
    else:
        [said] = failures(result)
        assert "not completed" in said
        assert not result["bit_identical"]


@pytest.mark.thorough
@pytest.mark.long
def test_engines_agree_on_what_is_delivered(tmp_path):
    on_both_engines(lambda **given: _run(*DELIVERIES["both"], **given), tmp_path,
                    ("delivery", "completion_writer", "index_packager"))


def test_shares_with_more_slots_than_indices_are_pooled(monkeypatch):
    monkeypatch.setattr("sim.run.run.MOST_INDICES", 8 * 26 - 1)
    few, many = (_run("deliver=unique", mini_batch=mini_batch, fidelity="fast", samples=32)
                 for mini_batch in (14, 16))
    assert few.notes == []
    assert many.notes == [pooled_instead(8 * 26)]
    for job, deliver in ((few, "unique"), (many, "pooled")):
        result = job.execute()
        assert result["complete"] and result["config"]["runtime"]["deliver"] == deliver


def test_the_command_says_that_bags_are_pooled(monkeypatch):
    monkeypatch.setattr("sim.run.run.MOST_INDICES", 100)
    said: list[str] = []
    result = api.run(config="tiny", samples=16, mini_batch=16, nodes=2, fidelity="fast",
                     set=["deliver=unique"], tell=said.append)
    assert result["complete"] and said == [pooled_instead(8 * 26)]


def test_no_checksum_is_a_dash():
    result = _run(fidelity="fast", samples=16).execute()
    shown = dict(zip(*(column.cells for column in table(result).columns[:2])))
    assert result["predictions_sha256"] is None and shown["predictions SHA-256"] == "-"
    checksum = "0123456789abcdef" * 4
    shown = dict(zip(*(column.cells for column in table(
        result | {"predictions_sha256": checksum}).columns[:2])))
    assert shown["predictions SHA-256"] == "0123456789abcdef..."
