"""Clusters whose NICs read rows from GPU memory give the same answers, and invalid messages do no
harm."""

import numpy as np
import pytest

from host.wire.packets import gpu_vectors, header_beat, parse_header
from rtl.formats import Opcode
from sim.job.options import RunOptions
from sim.node.node import Node
from sim.run.report import failures
from sim.run.run import Run
from tests.sim.interacting import model_of, write_model
from tests.sim.run.engines import on_both_engines
from tests.sim.run.results import faultless

READS = "row_reads=true"


def _run(*settings: str, **options) -> dict:
    given = {"config": "tiny", "samples": 32, "mini_batch": 8, "nodes": 2, "threads": 1,
             "gpu": "gpu_h100"}
    return Run(RunOptions.of(settings=settings, **given | options)).execute()


def _good(*settings: str, **options) -> dict:
    return faultless(_run(*settings, **options))


def _counts(result: dict, name: str) -> list[int]:
    return [counters[name] for counters in result["counters"]]


@pytest.fixture(scope="module")
def plain() -> dict:
    """Return the result of a run whose hosts launch gathers."""
    return _good()


@pytest.mark.parametrize(("settings", "options"), [
    ((), {}), (("deliver=unique", "completions=true"), {}),
    (("request_batch=1", "request_timeout=0", "local_cache=false", "remote_cache=false"), {}),
    pytest.param(("completions=true", "completion_flush=false"), {"nodes": 4, "in_flight": 16},
                 marks=pytest.mark.slow)])
def test_predictions_are_those_of_lists(plain, settings, options):
    """Each miss is read once, and no gather is launched."""
    result = _good(READS, *settings, **options)
    assert result["predictions_sha256"] == plain["predictions_sha256"]
    reads = _counts(result, "row_reads.reads")
    assert sum(reads) == result["gpu"]["rows"] and result["gpu"]["launches"] == 0
    assert reads == _counts(result, "local_cache.misses")
    assert not any(_counts(result, "local_cache.bad_fills"))


@pytest.mark.parametrize("dimension", [4, 8, 48, 64])
def test_vectors_of_any_length(tmp_path, dimension):
    """Rows are packed without gaps, whole or split by rows."""
    path = write_model(tmp_path / "model.toml", model_of(dimension, "to 9"))
    results = [_good(*settings, model=path, placement=placement, samples=48)
               for settings, placement in (((), "even"), ((READS,), "even"), ((READS,), "row"))]
    assert len({result["predictions_sha256"] for result in results}) == 1


def test_rows_come_without_a_launch(plain):
    """The launch of a gather is saved; each mini-batch waits for several launches."""
    assert _good(READS)["cycles"] < 0.6 * plain["cycles"]


@pytest.mark.parametrize("part", ["host", "gpu", "network"])
def test_a_part_that_falls_silent_for_a_while(plain, part):
    result = _good(READS, faults=f"silent-{part}=8us:60us@1")
    assert result["predictions_sha256"] == plain["predictions_sha256"]
    assert result["cycles"] > 15_000


def test_idle_cycles_are_skipped_without_effect():
    results = [_good(READS, skip=skip) for skip in (True, False)]
    for name in ("cycles", "counters", "predictions_sha256", "pcie"):
        assert results[0][name] == results[1][name]


def _sending(monkeypatch, change) -> None:
    """Replace each packet of rows by the result of ``change``."""
    send = Node._send

    def wrong(node: Node, packet: np.ndarray, now: float, more: int = 0) -> None:
        rows = parse_header(packet[0]).opcode == Opcode.GPU_VECTORS
        for sent in change(packet) if rows else [packet]:
            send(node, sent, now, more)

    monkeypatch.setattr(Node, "_send", wrong)


def _other(tag: int, opcode: Opcode = Opcode.GPU_VECTORS) -> np.ndarray:
    """Return a packet with a row of ones and the tag."""
    [packet] = gpu_vectors(np.array([tag], np.uint16), np.ones((1, 16), np.float32), node=0,
                           step=0, payload_beats=8)
    head = header_beat(opcode, node=0, step=0, count=1 if opcode == Opcode.GPU_VECTORS else 16,
                       acknowledge=0 if opcode == Opcode.GPU_VECTORS else tag)
    return np.concatenate((head, packet[1:]))


@pytest.mark.usefixtures("python_hosts")
def test_rows_that_were_not_asked_for_are_dropped(monkeypatch, plain):
    """Rows whose tag no miss has are counted."""
    _sending(monkeypatch, lambda packet: [_other(0xFFF0), packet])
    result = _good(READS)
    assert result["predictions_sha256"] == plain["predictions_sha256"]
    assert sum(_counts(result, "local_cache.bad_fills")) > 20


@pytest.mark.usefixtures("python_hosts")
def test_data_of_reads_of_a_ring_are_dropped(monkeypatch, plain):
    _sending(monkeypatch, lambda packet: [_other(0, Opcode.READ_DATA), packet])
    result = _good(READS)
    assert result["predictions_sha256"] == plain["predictions_sha256"]
    assert sum(_counts(result, "gpu_rings.bad_data")) > 20


@pytest.mark.thorough
@pytest.mark.usefixtures("python_hosts")
@pytest.mark.parametrize("change", [lambda packet: [packet[:-1]], lambda packet: []],
                         ids=["of another length", "that never come"])
@pytest.mark.parametrize("timeout", [20_000, pytest.param(0, marks=pytest.mark.slow)])
def test_rows_that_are_lost_end_steps_late(monkeypatch, change, timeout):
    """Each step is completed with a status; without timeouts the run reports that it is stuck."""
    _sending(monkeypatch, change)
    settings = ("completions=true", f"step_timeout={timeout}") if timeout else ()
    result = _run(READS, *settings, samples=16, patience=20_000 + timeout)
    assert result["complete"] == bool(timeout) and not result["results"]["equal"]
    if timeout:
        assert result["results"]["refused"] == 16 and result["stuck"] is None
        assert sum(_counts(result, "completion_writer.timeouts")) == 4
    else:
        assert "rows of its GPU" in failures(result)[0]


@pytest.mark.parametrize(("settings", "gpu", "message"), [
    ((READS, "gpu_rings=true"), "gpu_h100", "row_reads must be false with gpu_rings"),
    ((READS,), "gpu_rtx8000", "row_reads must be false where the tables of a node")])
def test_what_cannot_be_is_refused(settings, gpu, message):
    with pytest.raises(ValueError, match=message):
        _run(*settings, gpu=gpu)


@pytest.mark.thorough
@pytest.mark.long
def test_engines_agree(tmp_path):
    result = on_both_engines(lambda **given: Run(RunOptions.of(
        config="tiny", nodes=2, threads=1, gpu="gpu_h100", settings=(READS, "completions=true"),
        **given)), tmp_path, ("row_reads", "completion_writer"))
    assert sum(_counts(result, "row_reads.reads")) > 0
