"""Traffic of one NIC of two, on the engine: recorded once with answers, and replayed around resets.

The NIC is bare, or in a shell's top (:class:`tests.gen.shells.streams.Streams`). Beats are rows of
19 words in both cases: data, ``keep``, and a word with ``last``, ``err`` and the announced length.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gen.shells import SHELLS
from host.dlrm.embedding import EmbeddingTables
from host.dlrm.rows import row_values
from host.wire.packets import gpu_vectors, parse_header, parse_pooled, query_packets, query_records
from rtl.config import NicConfig
from rtl.formats import Opcode
from sim.engines import Engine, load
from sim.nic.build import nic_model
from sim.nic.registers import RegisterFile
from tests.gen.shells.cosim import case
from tests.gen.shells.streams import Streams
from tests.rtl.network.frames import Frame, parse, record_payload, vector_payload

__all__ = ["INPUTS", "OUTPUTS", "SAMPLES", "Push", "Recording", "Target", "is_last", "packets_of",
           "record", "was_cut", "words_of"]

SAMPLES = 60
INPUTS, OUTPUTS = ("host_rx", "net_rx"), ("host_tx", "net_tx")
_WORDS = 19
_QUANTUM = 32
_LOOKUPS = 40
"""Lookups in each packet of the peer, and its packets."""
_PACKETS = 12


def words_of(packet: bytes) -> np.ndarray:
    """Return the beats of a packet, uint32 ``[n, 19]``."""
    data = np.frombuffer(packet, "<u4").reshape(-1, 16)
    beats = np.full((len(data), _WORDS), 0xFFFFFFFF, np.uint32)
    beats[:, :16], beats[:, 18] = data, 0
    beats[-1, 18] = 1
    return beats


def is_last(beats: np.ndarray) -> np.ndarray:
    """Return which of ``beats`` end a packet."""
    return (beats[:, 18] & 1).astype(bool)


def packets_of(beats: np.ndarray) -> list[np.ndarray]:
    """Return ``beats`` packet by packet; the last one may lack its end."""
    ends = np.flatnonzero(is_last(beats)) + 1
    return [part for part in np.split(beats, ends) if len(part)]


def was_cut(beats: np.ndarray, expected: np.ndarray) -> bool:
    """Return whether a reset has cut the last packet of ``beats``.

    beats: beats that left up to the reset and after it. A cut packet has its length and its end.
    expected: beats without a reset.
    """
    same = (beats == expected[:len(beats)]).all(1)
    count = len(beats) if same.all() else int(np.argmin(same))
    filled = beats[count:]
    if not len(filled):
        assert not len(beats) or is_last(beats)[-1], "half a packet"
        return False
    assert count and not is_last(expected[count - 1:count])[0], "a packet is made up"
    rest = packets_of(expected[count:])[0]
    assert len(filled) == len(rest), "a packet has another length"
    assert (filled[:, :18] == np.uint32(0xFFFFFFFF)).all()
    # The end of the packet, and the length that is announced with each beat.
    assert (filled[:, 18] == rest[:, 18]).all()
    return True


class Target:
    """A NIC on the engine, bare (``nic``) or in a shell.

    Parameters: ``name``; ``config``, of the NIC.

    Members: ``engine``, ``registers``, ``framing`` of its network.
    """

    def __init__(self, name: str, config: NicConfig):
        self.name = name
        self.engine: Engine
        self._began = 0  # a cycle in which ``time`` has certain low bits
        if name == "nic":
            self.framing = config.net_framing
            self.engine, self.registers = nic_model(config, "verilator").instance()
            return
        top = Streams(name, config)
        self.framing = SHELLS[name].prepare(config).net_framing
        model = load(top, f"{name}_streams", recipe=f"Streams({name!r}, {config!r})",
                     clock_gating=False)
        self.engine = model.instance(skip=False)
        self.registers = RegisterFile(self.engine, top.registers)

    def begin_reset(self) -> None:
        """Reset the NIC or the shell's top; return in the middle of the reset."""
        if self.name == "nic":
            self.engine.reset(True)
        else:
            self.engine.set_signal("resetn", 0)
        self.run(2)
        if self.name == "opennic":  # its wrapper makes a full reset of each pulse
            self.engine.set_signal("resetn", 1)
            self._began = self.engine.cycle
        self.run(14)

    def end_reset(self) -> None:
        """End the reset, and wait until its end is reported."""
        engine = self.engine
        if self.name == "nic":
            engine.reset(False)
        if self.name == "vitis":
            engine.set_signal("resetn", 1)
            self._began = engine.cycle
            self.run(500)  # only a run without packets reports the end
            return
        done = {"nic": "swept", "opennic": "done"}[self.name]
        for _ in range(1000):
            if engine.get_signal(done):
                return
            self.run(1)
        raise AssertionError("the reset does not end")

    def align(self) -> None:
        """Run to a cycle in which ``time`` has the same low bits each time: the timeouts of packets
        depend on them. In a shell, each reset sets ``time`` to 0."""
        self.run((self._began - self.engine.cycle) % 1024)

    def load(self, plan) -> None:
        """Load the registers, as a driver does after a reset."""
        for name, value in case.SETTINGS.items():
            self.registers.write(name, value)
        for table, words in enumerate(plan.descriptors()):
            self.registers.table(table, [int(word) for word in words])
        self.registers.finish()
        self.engine.read_results()

    def run(self, cycles: int) -> None:
        self.engine.run(self.engine.cycle + cycles)


class Push(NamedTuple):
    """A packet that arrived: its stream, its beats, and the cycle from which they were offered."""

    stream: str
    beats: np.ndarray
    cycle: int


class Recording(NamedTuple):
    """The traffic at a NIC's edges, in cycles from its beginning.

    Members
    -------
    pushes: packets that arrived.
    outputs: by stream, the beats that left and their cycles.
    length: cycles.
    counters: values at the end.
    """

    pushes: list[Push]
    outputs: dict[str, tuple[np.ndarray, np.ndarray]]
    length: int
    counters: dict[str, int]

    @property
    def digest(self) -> str:
        """Hash of the outputs and their cycles."""
        text = hashlib.sha256()
        for name in OUTPUTS:
            for part in self.outputs[name]:
                text.update(np.ascontiguousarray(part).tobytes())
        return text.hexdigest()


def record(target: Target, folder: Path) -> Recording:
    """Run the traffic on a NIC whose registers are loaded; its answers must be numpy's.

    The other node looks up rows here while the host sends samples. Node and host answer requests.
    """
    model, plan, samples = case.model_of(folder), case.plan_of(folder), case.samples_of(folder)
    engine, start = target.engine, target.engine.cycle
    own = next(k for k, place in enumerate(plan.tables) if place.owner == 0)
    queries = query_packets(query_records(samples, 0), node=0, step=0, payload_beats=4)
    rows = np.arange(_LOOKUPS * _PACKETS) * 7 % model.rows[own]
    lookups = [[int(rows[k]) | own << 36 | k << 48 for k in range(n, n + _LOOKUPS)]
               for n in range(0, len(rows), _LOOKUPS)]
    seen: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {name: [] for name in OUTPUTS}
    pushes: list[Push] = []
    pooled: dict[tuple[int, int], bytes] = {}
    answered: set[int] = set()
    credits: list[int] = []  # beats of lookups that the other node has consumed, by packet
    open_packet = {name: np.empty((0, _WORDS), np.uint32) for name in OUTPUTS}

    def push(stream: str, packet: bytes) -> None:
        pushes.append(Push(stream, words_of(packet), engine.cycle - start))
        engine.push(stream, pushes[-1].beats, engine.cycle)

    def values(records: np.ndarray) -> np.ndarray:
        return row_values(model, case.SEED, records >> 36 & 0xFFF, records & (1 << 36) - 1)

    def from_nic(packet: np.ndarray) -> None:
        header = parse_header(packet[0])
        if header.opcode == Opcode.LOOKUP_REQUESTS:
            records = packet[1:].reshape(-1).view("<u8")[:header.count]
            for reply in gpu_vectors((records >> 48).astype(np.uint64), values(records), node=0,
                                     step=header.step, payload_beats=8):
                push("host_rx", reply.astype("<u4").tobytes())
        elif header.opcode == Opcode.POOLED:
            sample, bag, _, found, _ = parse_pooled(packet, header.count, model.dimension)
            pooled.update({(sample, bag + k): v.tobytes() for k, v in enumerate(found)})
        else:
            assert header.opcode == Opcode.CREDIT, header

    def from_peer(packet: np.ndarray) -> None:
        frame = parse(packet.tobytes(), target.framing)
        if frame.opcode == Opcode.LOOKUPS:
            records = np.frombuffer(frame.payload, "<u8")[:frame.count]
            credits.append(-(-frame.count // 8))
            push("net_rx", Frame(
                opcode=Opcode.VECTORS, source=1, destination=0, step=frame.step,
                count=frame.count, credit=sum(credits), framing=target.framing,
                payload=vector_payload([(int(r >> 48), v.tobytes()) for r, v in zip(
                    records, values(records))])).bytes())
            return
        tags = np.frombuffer(frame.payload, "<u2")[:frame.count]
        answered.update(int(tag) for tag in tags)

    take: dict[str, Callable] = {"host_tx": from_nic, "net_tx": from_peer}
    calm = 0
    while calm < 40:
        if queries:
            push("host_rx", queries.pop(0).astype("<u4").tobytes())
        # One packet at a time: the window after reset has no room for more.
        if lookups and len(answered) == _LOOKUPS * (_PACKETS - len(lookups)):
            records = lookups.pop(0)
            push("net_rx", Frame(opcode=Opcode.LOOKUPS, source=1, destination=0,
                                 count=len(records), framing=target.framing,
                                 payload=record_payload(records)).bytes())
        target.run(_QUANTUM)
        calm += 1
        for name in OUTPUTS:
            beats, cycles = engine.pop(name)
            seen[name].append((beats, cycles - start))
            whole = packets_of(np.concatenate((open_packet[name], beats)))
            rest = whole.pop() if whole and not is_last(whole[-1])[-1] else beats[:0]
            open_packet[name] = rest
            for packet in whole:
                calm = 0
                take[name](np.ascontiguousarray(packet[:, :16]))
        calm *= not (queries or lookups)
        assert engine.cycle - start < 100_000
    expected = EmbeddingTables(model, case.SEED).pooled(samples)
    assert pooled == {(s, t): expected[s, t].tobytes()
                      for s in range(len(samples)) for t in range(model.tables)}
    assert answered == set(range(len(rows)))
    outputs = {name: (np.concatenate([beats for beats, _ in parts]),
                      np.concatenate([cycles for _, cycles in parts]))
               for name, parts in seen.items()}
    length = engine.cycle - start
    return Recording(pushes, outputs, length, target.registers.counters())
