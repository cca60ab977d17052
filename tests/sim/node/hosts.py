"""A host in Python beside a compiled host, and packets of their NICs."""

from collections.abc import Sequence

import numpy as np

from host.data.generator import generate
from host.model import Model
from host.samples import concatenate
from host.timing.gpu import GpuProfile
from host.timing.pcie import PcieProfile
from host.toml.profile import load_profile
from host.wire.indices import IndexPart, index_packet
from host.wire.layouts import pack
from host.wire.packets import (
    header_beat,
    pack_records,
    records_to_beats,
    values_to_beats,
)
from host.wire.rows import row_answers
from rtl.config import NicConfig, preset
from rtl.formats import (
    NO_SAMPLE,
    ErrorRecord,
    Opcode,
    PooledTag,
)
from sim.host_cpp.node import CompiledNode
from sim.nic.ports import BEAT_WORDS, DATA_WORDS, LAST_BIT, with_framing
from sim.node.delivery import Delivery
from sim.node.node import Node
from sim.node.step import Step
from tests.sim.edges import Edge

__all__ = ["NODE", "NODES", "SEED", "Hosts", "errors", "indices", "model_of", "pooled", "steps_of",
           "vectors"]

NODE, NODES, SEED = 1, 3, 4
_TINY = preset("tiny")


def model_of(dimension: int, pooling: str = "sum") -> Model:
    """Return a model with empty bags and frequent keys."""
    return Model((5, 40, 300), dimension, 1, (dimension,), (1,), "small",
                 ((1, 1), (0, 3), (0, 6)), pooling=pooling)


def steps_of(model: Model, counts: Sequence[int], first: int, *, unique: bool,
             numbers: Sequence[int] | None = None) -> list[Step]:
    """Return steps with ``counts`` samples, numbered from ``first`` on."""
    samples, steps, at = concatenate(generate(model, sum(counts), 1)), [], 0
    for number, count in zip(numbers or range(len(counts)), counts):
        steps.append(Step.of(number, first + at, samples.slice(at, at + count), NODES,
                             (model.tables, model.dimension), unique=unique))
        at += count
    return steps


def vectors(step: int, first: int, values: np.ndarray, last: bool = False,
            sample: int = NO_SAMPLE, **fields: int) -> np.ndarray:
    """Return a POOLED packet of distinct vectors; with ``last``, a vector of zeros follows."""
    if last:
        values = np.concatenate((values, np.zeros((1, values.shape[1]), np.float32)))
    return pooled(step, sample, first, values, last, **fields)


def pooled(step: int, sample: int, first: int, values: np.ndarray, last: bool,
           **fields: int) -> np.ndarray:
    """Return a POOLED packet."""
    tag = pack(PooledTag, sample=sample & 0xFFFFFFFF, first_bag=first, last=int(last))
    head = header_beat(Opcode.POOLED, node=NODE, step=step, count=len(values), **fields)
    return np.concatenate((head, tag, values_to_beats(values)))


def indices(step: int, sample: int, first_slot: int, samples: int, last: bool,
            values: Sequence[int] | np.ndarray, **fields: int) -> np.ndarray:
    """Return an INDICES packet."""
    part = IndexPart(sample & 0xFFFFFFFF, first_slot, samples, last, np.array(values, np.uint16))
    return index_packet(part, node=NODE, step=step, **fields)


def errors(refusals: Sequence[tuple[int, int, int]], **fields: int) -> np.ndarray:
    """Return an ERRORS packet of samples, steps and statuses."""
    samples, steps, statuses = np.array(refusals).T
    records = pack_records(ErrorRecord, sample=samples & 0xFFFFFFFF, step=steps & 0xFFFF,
                           status=statuses)
    head = header_beat(Opcode.ERRORS, node=NODE, step=int(steps[0]), count=len(records), **fields)
    return np.concatenate((head, records_to_beats(records)))


class Hosts:
    """A host in Python and a compiled host, each with its own steps, given the same packets.

    Parameters: ``model``; ``python`` and ``compiled``, equal steps for each; ``delivery``;
        ``in_flight``; ``config``.
    """

    def __init__(self, model: Model, python: list[Step], compiled: list[Step], delivery: Delivery,
                 in_flight: int = 4, config: NicConfig = _TINY):
        pcie, gpu = (load_profile("pcie_gen3x16", PcieProfile),
                     load_profile("gpu_rtx8000", GpuProfile))
        self.steps = python, compiled
        self.edges = Edge("host_tx", "host_rx"), Edge("host_tx", "host_rx")
        self.nodes = (
            Node(NODE, self.edges[0], config,  # type: ignore[arg-type]
                 row_answers(model, SEED, NODE, config.host_payload_beats), model.dimension, pcie,
                 gpu, in_flight, delivery=delivery),
            CompiledNode(NODE, self.edges[1], config, model,  # type: ignore[arg-type]
                         SEED, pcie, gpu, in_flight, delivery=delivery))
        self.cycle, self._read = 0, 0
        for node, own in zip(self.nodes, self.steps):
            for step in own:
                node.submit(step, 0.0)
        self.turn([], 1)

    def turn(self, packets: Sequence[np.ndarray], cycles: int) -> None:
        """Let the NICs send ``packets``, and then wait for ``cycles``; check that both hosts acted
        alike."""
        self.give(packets)
        end = self.cycle + cycles
        while True:
            for edge, node in zip(self.edges, self.nodes):
                edge.cycle = self.cycle
                node.host_quantum(self.cycle)
            self.same()
            if self.cycle == end:
                return
            self.cycle = min(end, self.cycle + self.nodes[0].pcie.latency)

    def give(self, packets: Sequence[np.ndarray]) -> None:
        """Put ``packets`` at the outputs of both NICs."""
        if packets:
            beats = np.concatenate([with_framing(packet) for packet in packets])
            for edge in self.edges:
                edge.send(beats, np.arange(len(beats), dtype=np.uint64) + self.cycle)
            self.cycle += len(beats)

    def same(self) -> None:
        """Check that both hosts are in the same state."""
        python, compiled = self.nodes
        assert python.errors == compiled.errors
        for name in ("actions", "host_bytes", "lacking", "progress", "queries_waiting",
                     "unanswered"):
            assert getattr(python, name) == getattr(compiled, name), name
        assert python.next_events[1] == compiled.next_events[1]
        assert self.edges[0].written == self.edges[1].written
        assert [(step.number, step.starts, step.ends) for step in python.finished] == [
            (step.number, step.starts, step.ends) for step in compiled.finished]
        for one, other in zip(*self.steps):
            for name in ("answers", "filled", "left", "status"):
                assert np.array_equal(getattr(one, name), getattr(other, name)), name

    def sent(self) -> list[np.ndarray]:
        """Return the packets that both hosts have sent since the last call, in the same cycles."""
        both = [[np.concatenate(parts) for parts in zip(*edge.received)] for edge in self.edges]
        assert len(both[0]) == len(both[1]) and all(map(np.array_equal, *both))
        beats = both[0][0][self._read:] if both[0] else np.empty((0, BEAT_WORDS), np.uint32)
        self._read += len(beats)
        ends = np.flatnonzero(beats[:, LAST_BIT // 32] >> np.uint32(LAST_BIT % 32) & 1) + 1
        return [packet[:, :DATA_WORDS] for packet in np.split(beats, ends)[:-1]]
