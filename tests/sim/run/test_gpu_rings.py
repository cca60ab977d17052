"""Clusters whose NICs use rings in GPU memory give the same answers, and invalid messages do no
harm."""

from collections.abc import Sequence

import numpy as np
import pytest

from host.wire.packets import header_beat, parse_header
from rtl.formats import Opcode
from sim.job.options import RunOptions
from sim.node.node import Node
from sim.node.resident_kernel import ResidentKernel
from sim.run.report import failures
from sim.run.run import Run
from tests.sim.run.engines import on_both_engines
from tests.sim.run.results import faultless

RINGS = "gpu_rings=true"
BAD = ("bad_consumed", "bad_index", "bad_data", "short_data", "repeats")
OF_THE_MACHINE = ("wall_seconds", "cpu_seconds", "node_cycles_per_second", "node_cycles",
                  "engine", "options")


def _run(*settings: str, **options) -> dict:
    given = {"config": "tiny", "samples": 32, "mini_batch": 8, "nodes": 2, "threads": 1}
    return Run(RunOptions.of(settings=settings, **given | options)).execute()


def _good(*settings: str, **options) -> dict:
    return faultless(_run(*settings, **options))


def _counts(result: dict, name: str) -> list[int]:
    return [counters[f"gpu_rings.{name}"] for counters in result["counters"]]


@pytest.fixture(scope="module")
def plain() -> dict:
    """Return the result of a run without rings."""
    return _good()


@pytest.mark.parametrize(("settings", "options"), [
    ((), {}), (("deliver=unique", "completions=true"), {}),
    pytest.param(("completions=true", "completion_flush=false"), {"nodes": 4, "in_flight": 16},
                 marks=pytest.mark.slow),
    pytest.param(("request_batch=3",), {"in_flight": 1, "mini_batch": 5},
                 marks=pytest.mark.slow)])
def test_predictions_are_those_without_rings(plain, settings, options):
    """The ring wraps, and each list is written, announced, read and answered once."""
    result = _good(RINGS, *settings, **options)
    assert result["predictions_sha256"] == plain["predictions_sha256"]
    assert result["gpu"]["launches"] == sum(_counts(result, "lists"))
    for name in ("slots", "reads"):
        assert _counts(result, name) == _counts(result, "lists")
    assert 0 < sum(_counts(result, "lists_told")) <= sum(_counts(result, "lists"))
    assert not any(sum(_counts(result, name)) for name in BAD)


def test_idle_cycles_are_skipped_without_effect():
    results = [_good(RINGS, "deliver=unique", "completions=true", skip=skip)
               for skip in (True, False)]
    for result in results:
        for name in OF_THE_MACHINE:
            del result[name]
    assert results[0] == results[1]


@pytest.mark.parametrize("part", ["host", "gpu", "network"])
def test_a_part_that_falls_silent_for_a_while(plain, part):
    result = _good(RINGS, faults=f"silent-{part}=20us:60us@1")
    assert result["predictions_sha256"] == plain["predictions_sha256"]
    assert result["cycles"] != plain["cycles"]


def _storing(monkeypatch, before: dict[str, Sequence[int]]) -> None:
    """Before each count of a register, let the kernel store counts that are too high by the given
    numbers."""
    store = Node._store

    def wrong(node: Node, register: str, count: int, now: float) -> None:
        for ahead in before.get(register, ()):
            store(node, register, count + ahead, now)
        store(node, register, count, now)

    monkeypatch.setattr(Node, "_store", wrong)


@pytest.mark.usefixtures("python_hosts")
@pytest.mark.parametrize(("register", "counter"), [
    ("lists_consumed", "bad_consumed"), ("vectors_produced", "bad_index")])
def test_counts_that_run_ahead_are_refused(monkeypatch, plain, register, counter):
    """They are counted, and the previous count stays in force."""
    _storing(monkeypatch, {register: (300, 20000)})
    result = _good(RINGS)
    assert result["predictions_sha256"] == plain["predictions_sha256"]
    assert _counts(result, counter) == [2 * count for count in _counts(result, "lists")]


@pytest.mark.usefixtures("python_hosts")
def test_counts_that_are_old_say_nothing(monkeypatch, plain):
    _storing(monkeypatch, {name: (-1, -9) for name in ("lists_consumed", "vectors_produced")})
    result = _good(RINGS)
    assert result["predictions_sha256"] == plain["predictions_sha256"]
    assert not any(sum(_counts(result, name)) for name in BAD)


def _sending(monkeypatch, change) -> None:
    """Replace each READ_DATA packet by the result of ``change``."""
    send = Node._send

    def wrong(node: Node, packet: np.ndarray, now: float) -> None:
        read = parse_header(packet[0]).opcode == Opcode.READ_DATA
        for sent in change(packet) if read else [packet]:
            send(node, sent, now)

    monkeypatch.setattr(Node, "_send", wrong)


def _read_data(beats: np.ndarray, tag: int, words: int | None = None) -> np.ndarray:
    count = 8 * len(beats) if words is None else words
    head = header_beat(Opcode.READ_DATA, node=0, step=0, count=count, acknowledge=tag & 0xFFFF)
    return np.concatenate((head, beats))


def _tag(packet: np.ndarray) -> int:
    return parse_header(packet[0]).acknowledge


@pytest.mark.usefixtures("python_hosts")
@pytest.mark.parametrize("change", [
    lambda packet: [_read_data(packet[1:], _tag(packet) + 32), packet],
    lambda packet: [_read_data(packet[1:], _tag(packet) - 7000), packet],
    lambda packet: [packet, packet]], ids=["of a later slot", "of no slot", "doubled"])
def test_data_that_was_not_asked_for_is_dropped(monkeypatch, plain, change):
    _sending(monkeypatch, change)
    result = _good(RINGS)
    assert result["predictions_sha256"] == plain["predictions_sha256"]
    assert _counts(result, "bad_data") == _counts(result, "slots")


@pytest.mark.usefixtures("python_hosts")
@pytest.mark.parametrize("wrong", [
    lambda packet: _read_data(packet[1:2], _tag(packet), 1),
    lambda packet: _read_data(packet[1:].repeat(2, axis=0)[:64], _tag(packet))],
    ids=["failed", "longer"])
def test_data_of_another_length_is_read_again(monkeypatch, plain, wrong):
    """A failed read returns a word; the next read returns the slot."""
    seen: set[tuple[int, bytes]] = set()

    def change(packet: np.ndarray) -> list[np.ndarray]:
        known = (_tag(packet), packet[1:].tobytes())
        if known in seen:
            return [packet]
        seen.add(known)
        return [wrong(packet)]

    _sending(monkeypatch, change)
    result = _good(RINGS)
    assert result["predictions_sha256"] == plain["predictions_sha256"]
    assert _counts(result, "short_data") == _counts(result, "repeats") == _counts(result, "slots")


NEVER = {
    "reads a list": (ResidentKernel, "take", lambda kernel, lists, now: None),
    "fills a slot": (ResidentKernel, "_finish", lambda kernel, number, filled, now: None),
    "answers a read": (Node, "_send", None)}


@pytest.mark.usefixtures("python_hosts")
@pytest.mark.parametrize(("never", "timeout"), [
    *((never, 0) for never in NEVER),
    *(pytest.param(never, 20_000,
                   marks=pytest.mark.thorough if never == "reads a list" else pytest.mark.slow)
      for never in NEVER)])
def test_a_gpu_that_is_silent_ends_steps_late(monkeypatch, never, timeout):
    """Each step is completed with a status; without timeouts the run reports that it is stuck."""
    kind, name, action = NEVER[never]
    if action is None:
        _sending(monkeypatch, lambda packet: [])
    else:
        monkeypatch.setattr(kind, name, action)
    settings = ("completions=true", f"step_timeout={timeout}") if timeout else ()
    result = _run(RINGS, *settings, samples=16, patience=20_000 + timeout)
    assert result["complete"] == bool(timeout) and not result["results"]["equal"]
    if timeout:
        assert result["results"]["refused"] == 16 and result["stuck"] is None
        assert result["cycles"] >= timeout
        assert sum(counters["completion_writer.timeouts"] for counters in result["counters"]) == 4
    else:
        assert "rows of its GPU" in failures(result)[0]


@pytest.mark.thorough
@pytest.mark.long
def test_engines_agree(tmp_path):
    result = on_both_engines(lambda **given: Run(RunOptions.of(
        config="tiny", nodes=2, threads=1, settings=(RINGS, "completions=true"), **given)),
        tmp_path, ("gpu_rings", "completion_writer"))
    assert sum(_counts(result, "slots")) > 0
