"""Rates of blocks alone, in lookups or beats per cycle, on the trace of DESIGN section 7.

A block stands alone on a compiled engine: its source always offers, its sink always takes, and
what it misses is answered ``FILL_LATENCY`` cycles later, one vector a cycle. Caches are cold.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from host.generator import generate
from host.layouts import pack, unpack
from host.model import MODELS
from host.samples import Samples, concatenate
from rtl.cache import FillBeat, LocalCache
from rtl.config import NicConfig
from rtl.dedupe import DedupeTable
from rtl.formats import FrameInfo, RawBeat, Request
from rtl.network import VectorPackager, VectorRouter
from sim.engines import Engine, load

__all__ = ["FILL_LATENCY", "Rate", "dedupe_rate", "local_cache_rate", "store_path_rate", "trace"]

FILL_LATENCY = 690
"""Cycles from a miss to its vector: PCIe both ways and a gather without a launch."""

_QUANTUM = 512


@dataclass(frozen=True)
class Rate:
    """Items that went through a block in so many cycles."""

    name: str
    items: int
    cycles: int

    @property
    def per_cycle(self) -> float:
        """Items per cycle."""
        return self.items / self.cycles


def trace(samples: int = 8192, seed: int = 1) -> Samples:
    """Return the trace: Criteo-like samples, all keys on one node, in order."""
    return concatenate(generate(MODELS["kaggle"], samples, seed))


class StorePath(wiring.Component):
    """Dedupe table, vector router and vector packager: from a stored vector to a packet."""

    def __init__(self, config: NicConfig):
        self._dedupe, self._packager = DedupeTable(config), VectorPackager(config)
        layout = self._dedupe.signature.members
        super().__init__({
            "requests": layout["requests"], "misses": layout["misses"], "fills": layout["fills"],
            "headers": Out(stream.Signature(FrameInfo)), "payload": Out(stream.Signature(RawBeat)),
            "vector_beats": In(5), "time": In(32), "node": In(8), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.dedupe = dedupe = self._dedupe
        m.submodules.router = router = VectorRouter()
        m.submodules.packager = packager = self._packager
        wiring.connect(m, wiring.flipped(self.requests), dedupe.requests)
        wiring.connect(m, dedupe.misses, wiring.flipped(self.misses))
        wiring.connect(m, wiring.flipped(self.fills), dedupe.fills)
        wiring.connect(m, dedupe.vectors, router.i)
        wiring.connect(m, router.remote, packager.i)
        wiring.connect(m, packager.headers, wiring.flipped(self.headers))
        wiring.connect(m, packager.payload, wiring.flipped(self.payload))
        m.d.comb += [
            dedupe.enable.eq(1), dedupe.vector_beats.eq(self.vector_beats),
            packager.vector_beats.eq(self.vector_beats), packager.time.eq(self.time),
            packager.timeout.eq(64), router.node.eq(self.node), router.local.ready.eq(1),
            self.idle.eq(dedupe.idle & router.idle & packager.idle),
        ]
        return m


def _requests(samples: Samples, nodes: int = 1, mini_batch: int = 128) -> np.ndarray:
    """Return a request for each key: its step is its mini-batch, its requesters take turns."""
    keys = np.arange(len(samples.rows))
    sample = np.repeat(np.arange(len(samples)), np.diff(samples.key_offsets))
    return pack(Request, len(keys), key__row=samples.rows, key__table=samples.tables,
                landing=keys & 0xFFFF, node=keys % nodes, step=sample // mini_batch)


def _settle(engine: Engine) -> int:
    """Run until the tables are swept; return the cycle."""
    while not engine.get_signal("idle"):
        engine.run(engine.cycle + 64)
    return engine.cycle


def _answer(engine: Engine, misses_layout, next_free: int) -> int:
    """Answer the misses of the last quantum; return the next free cycle of the fill port."""
    misses, cycles = engine.pop("misses")
    if not len(misses):
        return next_free
    ids = unpack(misses_layout, misses, "id")
    due = np.empty(len(misses), np.uint64)
    for at, cycle in enumerate(cycles.tolist()):
        next_free = max(next_free, cycle + FILL_LATENCY)
        due[at] = next_free
        next_free += 1
    engine.push("fills", pack(FillBeat, len(misses), id=ids, last=1), due)
    return next_free


def _drive(engine: Engine, source: str, payloads: np.ndarray, sink: str, wanted: int,
           misses_layout) -> Iterator[np.ndarray]:
    """Push everything, run, and yield the cycles of what leaves ``sink``."""
    start = _settle(engine)
    engine.push(source, payloads, start)
    next_free = got = 0
    limit = start + 64 * len(payloads) + 100_000
    while got < wanted:
        if engine.cycle > limit:
            raise RuntimeError(f"{sink} gave {got} of {wanted} items in {limit - start} cycles")
        engine.run(engine.cycle + _QUANTUM)
        next_free = _answer(engine, misses_layout, next_free)
        _, cycles = engine.pop(sink)
        got += len(cycles)
        yield cycles - np.uint64(start)


def _rate(name: str, engine: Engine, source: str, payloads: np.ndarray, sink: str, wanted: int,
          misses_layout) -> Rate:
    last = max(int(part[-1]) for part in
               _drive(engine, source, payloads, sink, wanted, misses_layout) if len(part))
    return Rate(name, wanted, last + 1)


def dedupe_rate(config: NicConfig, samples: Samples, engine: str = "verilator") -> Rate:
    """Return requests per cycle of the dedupe table and its scatter lists."""
    block = DedupeTable(config)
    layout = block.misses.payload.shape()
    running = load(block, f"dedupe_{config.name}", engine).instance()
    running.set_signal("enable", 1)
    running.set_signal("vector_beats", 1)
    requests = _requests(samples)
    return _rate("dedupe and scatter", running, "requests", requests, "vectors", len(requests),
                 layout)


def local_cache_rate(config: NicConfig, samples: Samples, engine: str = "verilator") -> Rate:
    """Return lookups per cycle of the local cache."""
    block = LocalCache(config)
    layout = block.misses.payload.shape()
    running = load(block, f"local_cache_{config.name}", engine).instance()
    for name, value in (("enable", 1), ("vector_beats", 1), ("sets", config.local_cache_sets)):
        running.set_signal(name, value)
    shape = block.lookups.payload.shape()
    lookups = pack(shape, len(samples.rows), key__row=samples.rows, key__table=samples.tables,
                   meta=np.arange(len(samples.rows)) & 0xFFFF)
    return _rate("tag lookup", running, "lookups", lookups, "vectors", len(lookups), layout)


def store_path_rate(config: NicConfig, samples: Samples, engine: str = "verilator") -> Rate:
    """Return payload beats per cycle from stored vectors to packets, tag beats included."""
    block = StorePath(config)
    layout = block.misses.payload.shape()
    running = load(block, f"store_path_{config.name}", engine).instance()
    running.set_signal("vector_beats", 1)
    running.set_signal("node", config.nodes - 1)
    requests = _requests(samples, nodes=4)
    start = _settle(running)
    running.push("requests", requests, start)
    next_free = vectors = beats = 0
    last = start
    while vectors < len(requests):
        running.run(running.cycle + _QUANTUM)
        next_free = _answer(running, layout, next_free)
        headers, _ = running.pop("headers")
        vectors += int(unpack(FrameInfo, headers, "count").sum())
        _, cycles = running.pop("payload")
        beats += len(cycles)
        last = int(cycles[-1]) if len(cycles) else last
    while not running.get_signal("idle"):
        running.run(running.cycle + _QUANTUM)
    _, cycles = running.pop("payload")
    beats += len(cycles)
    last = int(cycles[-1]) if len(cycles) else last
    return Rate("store to packets", beats, last + 1 - start)
