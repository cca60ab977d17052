"""Packets of partials as a parser outputs them, and the expected results of a receiver."""

from dataclasses import dataclass, field

import numpy as np

from host.wire.packets import parse_header
from host.wire.partials import partial_packets, partials_that_fit
from rtl.config import beats_of
from rtl.formats import Opcode, Status
from tests.rtl.descriptors import Table, split

LOCAL, GLOBAL = 0, 1
BAD = {Status.TABLE: "bad_table", Status.KIND: "bad_table", Status.ROW: "bad_row"}


COUNTED = ("packets", "beats", "partials", "bad_step", "bad_beat", "bad_table", "bad_row",
           "bad_owner")
"""Counters that :class:`Reading` has."""


@dataclass
class Partials:
    """A packet of partials from ``source``: (table, row, beat) each, and float32 values."""

    keys: list[tuple[int, int, int]]
    values: np.ndarray
    source: int = 0
    step: int = 0
    level: int = GLOBAL
    opcode: Opcode = Opcode.PARTIALS

    def packet(self) -> np.ndarray:
        """Return the packet as packed by the host, header beat first."""
        tables, rows, beats = (np.array(part, np.uint64) for part in zip(*self.keys, strict=True))
        packet, = partial_packets(
            self.opcode, tables, rows, beats, self.values, node=0, step=self.step,
            payload_beats=100, level=self.level, source=self.source)
        return packet

    def beats(self) -> list[dict]:
        """Return the payload beats as :data:`rtl.network.layouts.CountedBeat`."""
        head, *payload = self.packet()
        header = parse_header(head)
        assert header.count == len(self.keys)
        left, beats = header.count, []
        record_beats = -(-left // 8)
        for k, beat in enumerate(payload):
            beats.append({"beat": {
                "data": int.from_bytes(beat.tobytes(), "little"),
                "records": min(8, left) if k < record_beats else 0, "source": header.source,
                "step": header.step, "last": int(k == len(payload) - 1)}, "count": left})
            left = max(0, left - 8)
        return beats

    def words(self, n: int) -> int:
        """Return the values of partial ``n`` as a beat inside the NIC."""
        return int.from_bytes(self.values[n].astype("<f4").tobytes(), "little")


def random_partials(rng: np.random.Generator, dimension: int, payload_beats: int, keys,
                    count: int | None = None, **fields) -> Partials:
    """Return a packet of at most ``payload_beats``, with (table, row) from ``keys(rng)``."""
    width = min(16, dimension)
    count = count or int(rng.integers(1, partials_that_fit(payload_beats, width) + 1))
    # Any bits but NaNs, which numpy may change when it copies them.
    bits = rng.integers(1 << 32, size=(count, width), dtype=np.uint32) & np.uint32(0xFF7FFFFF)
    return Partials([(*keys(rng), int(rng.integers(beats_of(dimension)))) for _ in range(count)],
                    bits.view("<f4"), **fields)


@dataclass
class Reading:
    """Expected results of admitted packets."""

    tables: dict[int, Table]
    node: int
    nodes: int
    step: int | None
    dimension: int
    out: list[dict] = field(default_factory=list)
    arrived: list[tuple[int, int]] = field(default_factory=list)
    freed: list[tuple[int, int]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTED, 0))

    def read(self, given: Partials) -> None:
        beats = len(given.packet()) - 1
        self.counts["packets"] += 1
        self.counts["beats"] += beats
        self.freed.append((given.source, beats))
        for n, (table, row, beat) in enumerate(given.keys):
            fault = self._judge(given, table, row, beat)
            if fault != "bad_step":
                self.arrived.append((given.source, given.step))
            self.counts[fault or "partials"] += 1
            if not fault:
                self.out.append({
                    "beat": {"key": {"row": row, "table": table}, "beat": beat, "step": given.step,
                             "data": given.words(n)},
                    "source": given.source, "level": self._level(given)})

    def _judge(self, given: Partials, table: int, row: int, beat: int) -> str | None:
        if self.step is not None and given.step != self.step:
            return "bad_step"
        if beat >= beats_of(self.dimension):
            return "bad_beat"
        owner, status = split(self.tables, table, row, self.node, self.nodes, False)
        if status:
            return BAD[status]
        return "bad_owner" if self._level(given) == GLOBAL and owner != self.node else None

    def _level(self, given: Partials) -> int:
        """Return the level; records of other nodes do not contain it."""
        return GLOBAL if given.opcode == Opcode.PARTIALS else given.level
