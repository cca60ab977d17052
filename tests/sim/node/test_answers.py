"""Answers placed by Python and by compiled hosts: equal values, rejections and completions."""

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from host.model import Model
from host.samples import Samples
from host.timing.gpu import GpuProfile
from host.timing.pcie import PcieProfile
from host.toml.profile import load_profile
from host.wire.layouts import pack
from host.wire.packets import (
    header_beat,
    pack_records,
    parse_header,
    records_to_beats,
    values_to_beats,
)
from rtl.config import NicConfig, preset
from rtl.formats import (
    DenseRecord,
    ErrorRecord,
    LookupRecord,
    Opcode,
    PooledTag,
    ResultPartTag,
)
from sim.host_cpp.node import CompiledNode
from sim.nic.ports import DATA_WORDS, Packets, with_framing
from sim.node.answers import Answers, Notice
from sim.node.errors import ProtocolError
from sim.node.step import Step
from tests.sim.edges import Edge

NODE, DIMENSION = 1, 8
BEATS = 16
KAGGLE = preset("kaggle")


def _step(interaction: bool, number: int, first: int, samples: int,
          answer: tuple[int, int]) -> Step:
    part = Samples(np.zeros((samples, 1), np.float32), np.zeros(samples, np.float32),
                   np.ones((samples, 1), np.int32), np.zeros(samples, np.int32),
                   np.zeros(samples, np.int64))
    dense = np.zeros((samples, DIMENSION), np.float32) if interaction else None
    return Step.of(number, first, part, 3, answer, dense)


def _packet(opcode: Opcode, payload: np.ndarray, count: int, **fields: int) -> np.ndarray:
    return np.concatenate((header_beat(opcode, node=NODE, step=7, count=count, **fields), payload))


def _pooled(sample: int, first: int, values: np.ndarray, last: bool, *, count: int | None = None,
            **fields: int) -> np.ndarray:
    tag = pack(PooledTag, sample=sample & 0xFFFFFFFF, first_bag=first, last=int(last))
    return _packet(Opcode.POOLED, np.concatenate((tag, values_to_beats(values))),
                   len(values) if count is None else count, **fields)


def _result_part(sample: int, first: int, beats: np.ndarray, last: bool, **fields: int,
                 ) -> np.ndarray:
    tag = pack(ResultPartTag, sample=sample & 0xFFFFFFFF, first_beat=first, last=int(last))
    return _packet(Opcode.RESULT_PART, np.concatenate((tag, beats.view(np.uint32))), len(beats),
                   **fields)


def _results(samples: list[int], beats: np.ndarray, **fields: int) -> np.ndarray:
    tags = np.zeros((-(-len(samples) // BEATS), BEATS), np.uint32)
    tags.reshape(-1)[:len(samples)] = samples
    return _packet(Opcode.RESULTS, np.concatenate((tags, beats.reshape(-1, BEATS).view(np.uint32))),
                   len(samples), **fields)


def _errors(refusals: list[tuple[int, int]], **fields: int) -> np.ndarray:
    records = np.zeros((-(-len(refusals) // 8), BEATS), np.uint32)
    flat = records.reshape(-1, 2)
    for at, (sample, status) in enumerate(refusals):
        flat[at] = pack(ErrorRecord, sample=sample & 0xFFFFFFFF, step=7, status=status)
    return _packet(Opcode.ERRORS, records, len(refusals), **fields)


def _together(packets: list[np.ndarray]) -> Packets:
    ends = np.cumsum([len(packet) for packet in packets]).tolist()
    return Packets(np.concatenate(packets), [0, *ends[:-1]], ends, list(range(len(packets))))


class _Both:
    """`Answers` in Python and a compiled host, each with its own steps."""

    def __init__(self, interaction: bool, steps, config: NicConfig = KAGGLE):
        self.refused = []
        self.steps = [[_step(interaction, *step) for step in steps] for _ in range(2)]
        self.python = Answers(NODE, DIMENSION, interaction=interaction,
                              refused=lambda *arrays: self.refused.append(arrays))
        self.edge = Edge("host_tx", "host_rx")
        self.node = CompiledNode(
            NODE, self.edge, config, Model((7,), DIMENSION, 1, (DIMENSION,), (1,)), 1,
            load_profile("pcie_gen3x16", PcieProfile), load_profile("gpu_rtx8000", GpuProfile), 99,
            8 if interaction else None)
        self.cycle = 0
        for mine, theirs in zip(*self.steps):
            self.python.open(mine)
            self.node.submit(theirs, 0.0)
        self.node.host_quantum(0)

    def take(self, packets: list[np.ndarray]) -> tuple[list[Notice], list[int]]:
        """Give both the packets; return Python's notices, and the steps completed so far."""
        beats = np.concatenate([with_framing(packet) for packet in packets])
        self.edge.send(beats, np.arange(len(beats), dtype=np.uint64) + self.cycle)
        self.edge.cycle = self.cycle = self.cycle + len(beats)
        told = self.python.take(_together(packets))
        completed = [step.number for packet in told for step in packet.completed]
        for step in [step for packet in told for step in packet.completed]:
            self.python.close(step)
        before = len(self.node.finished)
        self.node.host_quantum(self.cycle)
        assert [step.number for step in self.node.finished[before:]] == completed
        self.same()
        return told, completed

    @property
    def beats_sent(self) -> int:
        return sum(len(beats) for beats, _ in self.edge.received)

    def same(self) -> None:
        assert self.python.errors == self.node.errors
        for one, other in zip(*self.steps):
            for name in ("answers", "filled", "left", "status"):
                assert np.array_equal(getattr(one, name), getattr(other, name)), name


@pytest.mark.parametrize("interaction", [False, True])
def test_the_same_in_python_and_compiled(interaction):
    """Several steps are in flight, with sample numbers around 2^32 and every kind of packet."""
    rng = np.random.default_rng(5)
    shape = (5, BEATS if interaction else DIMENSION)
    steps, first = [], (1 << 32) - 40
    for number in range(12):
        steps.append((number, first, 3 * int(rng.integers(1, 9)), shape))
        first += steps[-1][2]
    both = _Both(interaction, steps)
    todo = []
    for _, first, samples, _ in steps:
        for at in range(samples // 3, 2 * (samples // 3)):
            values = rng.standard_normal(shape, np.float32)
            cuts = [0, *np.flatnonzero(rng.random(4) < 0.4) + 1, 5]
            todo.append((first + at, [(a, values[a:b]) for a, b in pairwise(cuts)]))
    expected = {sample: np.concatenate([part for _, part in parts]) for sample, parts in todo}
    credit, completed, told = 0, [], 0
    while todo:
        packets = []
        for _ in range(int(rng.integers(1, 7))):
            credit += int(rng.integers(0, 4)) // 3
            fields = {"credit": credit, "acknowledge": credit // 2}
            kind = rng.random()
            if kind < 0.1:
                packets.append(_packet(Opcode.CREDIT, np.zeros((0, BEATS), np.uint32), 0, **fields))
            elif kind < 0.2:
                packets.append(_packet(Opcode.LOOKUP_REQUESTS, np.zeros((1, BEATS), np.uint32), 3,
                                       **fields))
            elif todo:
                sample, parts = todo[int(rng.integers(0, min(9, len(todo))))]
                whole = len(parts[0][1]) == 5 or parts[0][0] == 0
                if whole and kind < 0.3:
                    packets.append(_errors([(sample, 2), (1 << 31, 5)], **fields))
                    expected.pop(sample)
                    parts.clear()
                elif interaction and len(parts) == 1 and parts[0][0] == 0:
                    packets.append(_results([sample & 0xFFFFFFFF], parts.pop()[1], **fields))
                else:
                    make = _result_part if interaction else _pooled
                    begin, values = parts.pop(0)
                    packets.append(make(sample, begin, values, not parts, **fields))
                todo = [item for item in todo if item[1]]
        said, ended = both.take(packets)
        completed += ended
        told += len(said)
    assert sorted(completed) == list(range(12)) and told > 12
    assert both.refused and both.python.errors and not both.python.steps
    assert not both.node.unanswered
    for own in both.steps:
        for step in own:
            for at in range(len(step.samples)):
                if (values := expected.get(step.first + at)) is not None:
                    assert np.array_equal(step.answers[at].view(np.uint32),
                                          values.view(np.uint32))
    same_credit = [_packet(Opcode.CREDIT, np.zeros((0, BEATS), np.uint32), 0, credit=credit)]
    assert len(both.take(same_credit)[0]) == 1


VALUES = np.arange(5 * DIMENSION, dtype=np.float32).reshape(5, DIMENSION)


@pytest.mark.parametrize(("packets", "message"), [
    ([_pooled(99, 0, VALUES, True)], "node 1 answered sample 99, which is not in flight"),
    ([_pooled(106, 0, VALUES, True)], "node 1 answered sample 106, which is not in flight"),
    ([_pooled(101, 0, VALUES, True)], "sample 101 was answered at node 1, which does not hold it"),
    ([_pooled(104, 0, VALUES, True)], "sample 104 was answered at node 1, which does not hold it"),
    ([_pooled(102, 1, VALUES[:2], False)], "sample 102 got bags 1 to 2 after 0 bags"),
    ([_pooled(102, 0, VALUES[:4], False), _pooled(102, 4, VALUES[:2], True)],
     "sample 102 got bags 4 to 5 after 4 bags"),
    ([_pooled(103, 0, VALUES, True), _pooled(103, 0, VALUES, True)],
     "sample 103 got bags 0 to 4 after 5 bags"),
    ([_pooled(102, 0, VALUES[:3], True)], "sample 102 ended after 3 of 5 parts"),
    ([_pooled(102, 0, VALUES, False)], "sample 102 ended after 5 of 5 parts"),
    ([_pooled(102, 0, VALUES[:2], False, count=5)], "count must match 1 beats of vectors, not 5"),
    ([_pooled(102, 0, VALUES, True, count=2)], "count must match 3 beats of vectors, not 2"),
    ([_pooled(102, 0, VALUES, True), _errors([(102, 3)])],
     "sample 102 was answered twice, the second time with error 3")])
def test_unexpected_answers(packets, message):
    both = _Both(False, [(4, 100, 6, (5, DIMENSION))])
    with pytest.raises((ValueError, ProtocolError), match=message):
        both.python.take(_together(packets))
    both.edge.send(np.concatenate([with_framing(packet) for packet in packets]),
                   np.arange(sum(map(len, packets)), dtype=np.uint64))
    sample = re.search(r"sample (\d+)", message) or [None, "102"]
    with pytest.raises(ProtocolError, match=f"node 1 answered sample {sample[1]}, or a part of it, "
                                            f"out of turn"):
        both.node.host_quantum(99)


def test_answers_before_a_wrong_one_are_placed():
    both = _Both(False, [(4, 100, 6, (5, DIMENSION))])
    packets = [_pooled(102, 0, VALUES, True), _pooled(99, 0, VALUES, True),
               _pooled(103, 0, VALUES, True)]
    with pytest.raises(ProtocolError):
        both.take(packets)
    with pytest.raises(ProtocolError):
        both.node.host_quantum(99)
    both.same()
    assert both.steps[1][0].left.tolist() == [2, 1, 2]


@pytest.mark.parametrize(("packet", "message"), [
    (_packet(Opcode.LOOKUPS, np.zeros((1, BEATS), np.uint32), 1), "sent opcode 0x1 to its host"),
    (_packet(Opcode.LOOKUP_REQUESTS, pack(LookupRecord, 8, row=7).reshape(1, BEATS), 1),
     "requested row 7, which its table does not have"),
    (_packet(Opcode.LOOKUP_REQUESTS, np.zeros((1, BEATS), np.uint32), 9),
     "sent its host a packet of opcode 0x20 whose count does not fit its length"),
    (_packet(Opcode.POOLED, np.zeros((0, BEATS), np.uint32), 0),
     "sent its host a packet of opcode 0x21 whose count does not fit its length")])
def test_invalid_requests_to_a_host(packet, message):
    both = _Both(False, [(4, 100, 6, (5, DIMENSION))])
    both.edge.send(with_framing(packet), np.arange(len(packet), dtype=np.uint64))
    with pytest.raises(ProtocolError, match=f"node 1 {message}"):
        both.node.host_quantum(0)
        both.node.host_quantum(100_000)


def test_refusals_before_all_queries_are_sent():
    """The remaining queries of a completed share are still sent; then the share is removed."""
    both = _Both(False, [(4, 100, 300, (5, DIMENSION))], replace(KAGGLE, query_beats=16))
    assert both.beats_sent == 2 * 9  # two packets of 8 beats after their headers
    both.take([_errors([(sample, 2) for sample in range(200, 300)])])
    assert not both.node.unanswered and both.node.queries_waiting == 2
    for consumed in (8, 16):
        both.take([_packet(Opcode.CREDIT, np.zeros((0, BEATS), np.uint32), 0, credit=consumed)])
    assert not both.node.queries_waiting
    assert both.beats_sent == 25 + 4  # 200 records


def test_a_refusal_between_a_request_for_dense_vectors_and_their_gather():
    """The vectors are sent unchanged, although the step has ended meanwhile."""
    both = _Both(True, [(4, 100, 6, (5, BEATS))])
    theirs = both.steps[1][0].dense
    assert theirs is not None
    theirs[:] = dense = np.arange(theirs.size, dtype=np.float32).reshape(theirs.shape) + 1
    records = pack_records(DenseRecord, sample=np.array([103, 102], np.uint64),
                           landing=np.array([9, 4], np.uint64))
    asked = len(both.edge.received)
    both.take([_packet(Opcode.DENSE_REQUESTS, records_to_beats(records), 2)])
    assert both.node.dense.rows == 0  # the MLP has not run
    _, completed = both.take([_errors([(102, 2), (103, 2)])])
    assert completed == [4] and not both.node.unanswered
    theirs.fill(np.nan)
    both.node.host_quantum(1_000_000)
    assert both.node.dense.rows == 2
    [(beats, _)] = both.edge.received[asked:]
    words = np.ascontiguousarray(beats[:, :DATA_WORDS])
    head = parse_header(words[0])
    assert (head.opcode, head.count) == (Opcode.DENSE_VECTORS, 2)
    assert words[1].view(np.uint16)[:2].tolist() == [9, 4]
    assert words[2].view(np.float32).tolist() == dense[[3, 2]].reshape(-1).tolist()
