"""Rows of the blocks between NIC and GPU memory, in items per cycle: each block alone."""

from collections.abc import Callable

import numpy as np

from host.samples import Samples
from host.wire.layouts import pack, unpack, word_count
from rtl.config import NicConfig, preset
from rtl.delivery import IndexPackager, SlotIndex
from rtl.formats import (
    BEAT_BYTES,
    FrameInfo,
    HeaderBeat,
    HostFrame,
    Opcode,
    OutgoingRecord,
    ReadRecord,
)
from rtl.rings import GpuRings, RowReads
from sim.bench.rates import Rate, settle, trace
from sim.bench.rows import Job, Progress, Row
from sim.engines import load

__all__ = ["delivery_jobs", "index_rate", "read_rate", "ring_rate"]

_QUANTUM = 64
_ROUND_TRIP = 210
"""Cycles of a PCIe round trip."""
_PCIE = 0.79
"""Beats per cycle of PCIe, 12.59 GB/s."""


def index_rate(config: NicConfig, samples: Samples, engine: str = "verilator",
               share: int = 128) -> Rate:
    """Return slots per cycle of the packager of indices; ``share``: samples of a step."""
    running = load(IndexPackager(config), f"indices_{config.name}", engine,
                   recipe=f"IndexPackager({config!r})").instance()
    count = len(samples.rows)
    sample = np.repeat(np.arange(len(samples)), np.diff(samples.key_offsets))
    last = np.zeros(count, np.int64)
    last[samples.key_offsets[1:] - 1] = 1
    running.set_signal("timeout", 256)
    start = settle(running)
    running.push("i", pack(SlotIndex, count, index=np.arange(count) % 1000, sample=sample,
                           step=sample // share, last=last, bag_end=1), start)
    sent = end = 0
    while sent < count - 2 * share:  # the last packet waits for its time-out
        running.run(running.cycle + _QUANTUM)
        headers, _ = running.pop("headers")
        sent += int(unpack(HostFrame, headers, "count").sum()) if len(headers) else 0
        _, cycles = running.pop("payload")
        end = int(cycles[-1]) if len(cycles) else end
    return Rate("indices", sent, end + 1 - start)


def ring_rate(config: NicConfig, engine: str = "verilator", lists: int = 200) -> Rate:
    """Return beats per cycle to the parser, headers included.

    A kernel has filled all slots before the first is read. PCIe delivers a beat per cycle, a round
    trip after the read."""
    running = load(GpuRings(), "gpu_rings", engine, recipe="GpuRings()").instance()
    rows = 62  # with two beats of tags a full slot
    for name, value in (("enable", 1), ("read", 1), ("vector_beats", 1), ("every", 16),
                        ("list_place__ring__ring_shift", 8), ("list_place__ring__slot_shift", 11),
                        ("vector_place__ring__ring_shift", 8),
                        ("vector_place__ring__slot_shift", 12)):
        running.set_signal(name, value)
    start = settle(running)
    item = FrameInfo.const({"opcode": Opcode.LOOKUP_REQUESTS, "count": rows}).as_value().value
    words = np.frombuffer(item.to_bytes(4 * word_count(FrameInfo), "little"), "<u4")
    running.push("lists", np.tile(words, (lists, 1)), start)
    running.run(start + 10 * lists)
    for name in ("list_headers", "headers", "payload"):
        running.pop(name)
    begun, link, got, end = running.cycle, 0, 0, 0
    running.set_signal("produced", lists)
    whole = lists * (1 + config.host_payload_beats)
    while got < whole:
        if running.cycle > begun + 4 * whole:
            raise RuntimeError(f"{got} of {whole} beats in {running.cycle - begun} cycles")
        running.run(running.cycle + _QUANTUM)
        headers, cycles = running.pop("headers")
        records, _ = running.pop("payload")
        opcodes = unpack(HostFrame, headers, "opcode") if len(headers) else ()
        for opcode, record, cycle in zip(opcodes, records, cycles):
            if opcode != Opcode.READ:
                continue
            link = max(link, int(cycle) + _ROUND_TRIP)
            packet = _slot(record)
            running.push("i", packet, np.arange(link, link + len(packet), dtype=np.uint64))
            link += len(packet)
        beats, cycles = running.pop("o")
        got += len(beats)
        end = int(cycles[-1]) if len(cycles) else end
    return Rate("ring", got, end + 1 - begun - _ROUND_TRIP)


def read_rate(config: NicConfig, engine: str = "verilator", rows: int = 20_000) -> Rate:
    """Return reads of rows per cycle, for misses without a pause."""
    running = load(RowReads(config.tables), "row_reads", engine,
                   recipe=f"RowReads({config.tables})").instance()
    for name, value in (("enable", 1), ("vector_beats", 1)):
        running.set_signal(name, value)
    start = settle(running)
    running.push("i", pack(OutgoingRecord, rows, record=np.arange(rows) * 1001), start)
    running.run(start + 2 * rows)
    _, cycles = running.pop("o")
    return Rate("reads", len(cycles), int(cycles[-1]) + 1 - start)


def _slot(record: np.ndarray) -> np.ndarray:
    """Return the READ_DATA packet that answers the read in a beat."""
    tag, size = (int(unpack(ReadRecord, record[None], name)[0]) for name in ("tag", "bytes"))
    beats = size // BEAT_BYTES
    head = pack(HeaderBeat, ember__version=1, ember__opcode=int(Opcode.READ_DATA),
                ember__count=8 * beats, ember__acknowledge=tag)
    items = np.concatenate((head, np.zeros((beats, head.shape[1]), np.uint32)))
    last = np.zeros((1 + beats, 1), np.uint32)
    last[-1] = 1
    return np.concatenate((items, last), axis=1)


def delivery_jobs() -> list[Job]:
    """Return the jobs: indices of the trace's slots, full slots of vectors."""
    config = preset("kaggle")
    cases: list[tuple[str, str, float, str, Callable[[], Rate]]] = [
        ("indices to the host, the trace", "slots/cycle", 0.95, "steps of 128 samples",
         lambda: index_rate(config, trace())),
        ("vectors of a ring in GPU memory", "beats/cycle", _PCIE,
         f"slots of 64 beats, read {_ROUND_TRIP} cycles away", lambda: ring_rate(config)),
        ("reads of rows in GPU memory", "rows/cycle", 0.95, "by address, of misses without a pause",
         lambda: read_rate(config))]

    def job(name: str, unit: str, target: float, note: str, measure: Callable[[], Rate]) -> Job:
        def rows(progress: Progress) -> list[Row]:
            rate = measure()
            return [Row(name, rate.per_cycle, unit, target, note=(
                f"{note}; {rate.items:,} in {rate.cycles:,} cycles"))]
        return Job("delivery", name, rows)

    return [job(*case) for case in cases]
