"""Rates of single blocks, in lookups or beats per cycle, on a Criteo-like trace.

A block runs alone on a compiled engine: its source is always valid, its sink always ready, and its
misses are answered ``FILL_LATENCY`` cycles later, one vector per cycle. Caches are cold.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from host.data.generator import generate
from host.model import MODELS
from host.placement.sets import set_of
from host.placement.shard import key_hash
from host.samples import Samples, concatenate
from host.wire.layouts import pack, unpack
from host.wire.packets import pack_records
from rtl.cache import FillBeat, LocalCache
from rtl.config import BEAT_BITS, LANES, NicConfig
from rtl.dedupe import DedupeTable
from rtl.formats import LookupRecord, OutgoingRecord, PeerBeat, RecordKind, Request
from rtl.interaction.dot_interaction import DotInteraction
from rtl.interaction.pairs import pair_count
from rtl.interaction.records import VectorInBeat
from sim.bench.rate_paths import LandingPath, LookupBlocks, StorePath
from sim.engines import Engine, load

__all__ = [
    "FILL_LATENCY", "Rate", "dedupe_rate", "dot_interaction_rate", "landing_path_rate",
    "local_cache_rate", "one_key", "one_set", "remote_cache_rate", "settle", "store_path_frames",
    "trace",
]

FILL_LATENCY = 690
"""Cycles from a miss to its vector: PCIe in both directions and a gather without launch time."""

_QUANTUM = 512


@dataclass(frozen=True)
class Rate:
    """Number of items that passed a block, and the cycles they took."""

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


def one_key(samples: Samples) -> Samples:
    """Return ``samples`` with every key the same."""
    return replace(samples, tables=np.zeros_like(samples.tables),
                   rows=np.zeros_like(samples.rows))


def one_set(samples: Samples, sets: int, keys: int = 4096) -> Samples:
    """Return ``samples`` with each key replaced by one of ``keys`` that share a set.

    Equal keys stay equal, so the skew remains. ``sets``: number of sets of the table under test.
    """
    pool = np.arange(2 * keys * sets, dtype=np.int64)
    tables = np.zeros_like(pool)
    same = pool[set_of(key_hash(tables, pool).astype(np.int64), sets) == 0][:keys]
    if len(same) < keys:
        raise RuntimeError(f"{len(same)} of {keys} keys found for one of {sets} sets")
    _, index = np.unique(samples.keys, return_inverse=True)
    return replace(samples, tables=np.zeros_like(samples.tables), rows=same[index % keys])


def _requests(samples: Samples, nodes: int = 1, places: int = 1 << 16,
              mini_batch: int = 128) -> np.ndarray:
    """Return a request for each key.

    The step is the key's mini-batch. Requesters take turns; the ``places`` of each are used in
    order.
    """
    keys = np.arange(len(samples.rows))
    sample = np.repeat(np.arange(len(samples)), np.diff(samples.key_offsets))
    return pack(Request, len(keys), key__row=samples.rows, key__table=samples.tables,
                landing=keys // nodes % places, node=keys % nodes, step=sample // mini_batch)


def settle(engine: Engine) -> int:
    """Run until the tables are cleared; return the cycle."""
    while not engine.get_signal("idle"):
        engine.run(engine.cycle + 64)
    return engine.cycle


Answer = Callable[[np.ndarray], np.ndarray]
"""Makes the fills that answer the misses of a block, one beat each."""


def _answer(engine: Engine, answer: Answer, next_free: int, block: str = "") -> int:
    """Push fills for the misses of the last quantum; return the fill port's next free cycle."""
    misses, cycles = engine.pop(f"{block}misses")
    if not len(misses):
        return next_free
    due = np.empty(len(misses), np.uint64)
    for at, cycle in enumerate(cycles.tolist()):
        next_free = max(next_free, cycle + FILL_LATENCY)
        due[at] = next_free
        next_free += 1
    engine.push(f"{block}fills", answer(misses), due)
    return next_free


def _by_id(misses_layout) -> Answer:
    """Return an `Answer` to misses that carry an id."""
    def fills(misses: np.ndarray) -> np.ndarray:
        return pack(FillBeat, len(misses), id=unpack(misses_layout, misses, "id"), last=1)
    return fills


def _by_landing(misses: np.ndarray) -> np.ndarray:
    """Return the fills for misses that are lookups for another node."""
    record, owner = (unpack(OutgoingRecord, misses, name) for name in ("record", "destination"))
    return pack(PeerBeat, len(misses), last=1, source=owner,
                tag=record >> np.uint64(LookupRecord["landing"].offset))


def _rate(name: str, engine: Engine, block: str, source: str, payloads: np.ndarray,
          answer: Answer) -> Rate:
    """Push ``payloads`` into ``source`` of a block and run until all vectors have left."""
    start = settle(engine)
    engine.push(f"{block}__{source}", payloads, start)
    next_free = got = last = 0
    limit = start + 64 * len(payloads) + 100_000
    while got < len(payloads):
        if engine.cycle > limit:
            raise RuntimeError(f"{block} gave {got} of {len(payloads)} vectors in "
                               f"{limit - start} cycles")
        engine.run(engine.cycle + _QUANTUM)
        next_free = _answer(engine, answer, next_free, f"{block}__")
        _, cycles = engine.pop(f"{block}__vectors")
        got += len(cycles)
        last = int(cycles[-1]) - start if len(cycles) else last
    return Rate(name, len(payloads), last + 1)


def _lookup_blocks(config: NicConfig, engine: str, block: str, **signals: int) -> Engine:
    """Return the running lookup blocks, with the signals of the measured one set."""
    running = load(LookupBlocks(config), f"lookup_blocks_{config.name}", engine,
                   recipe=f"LookupBlocks({config!r})").instance()
    for name, value in ({"enable": 1, "vector_beats": 1} | signals).items():
        running.set_signal(f"{block}__{name}", value)
    return running


def dedupe_rate(config: NicConfig, samples: Samples, engine: str = "verilator",
                mini_batch: int = 128) -> Rate:
    """Return requests per cycle of the dedupe table and its scatter lists.

    ``mini_batch``: samples of a step; the set of a key depends on its step.
    """
    running = _lookup_blocks(config, engine, "dedupe")
    layout = DedupeTable(config).misses.payload.shape()
    return _rate("dedupe and scatter", running, "dedupe", "requests",
                 _requests(samples, mini_batch=mini_batch), _by_id(layout))


def local_cache_rate(config: NicConfig, samples: Samples, engine: str = "verilator",
                     sets: int | None = None) -> Rate:
    """Return lookups per cycle of the local cache, with ``sets`` sets in use or all of them."""
    running = _lookup_blocks(config, engine, "local", sets=sets or config.local_cache_sets)
    block = LocalCache(config)
    lookups = pack(block.lookups.payload.shape(), len(samples.rows), key__row=samples.rows,
                   key__table=samples.tables, meta=np.arange(len(samples.rows)) & 0xFFFF)
    return _rate("tag lookup", running, "local", "lookups", lookups,
                 _by_id(block.misses.payload.shape()))


def remote_cache_rate(config: NicConfig, samples: Samples, engine: str = "verilator",
                      sets: int | None = None, merge: bool = True) -> Rate:
    """Return lookups per cycle of the remote cache, with ``sets`` sets in use or all of them."""
    running = _lookup_blocks(config, engine, "remote", sets=sets or config.remote_cache_sets,
                             merge=int(merge))
    records = pack_records(LookupRecord, row=samples.rows, table=samples.tables,
                           landing=np.arange(len(samples.rows)) % config.hold_vectors)
    lookups = pack(OutgoingRecord, len(records), destination=1, record=records)
    return _rate("remote-cache lookup", running, "remote", "lookups", lookups, _by_landing)


def store_path_frames(config: NicConfig, samples: Samples, requesters: int,
                      engine: str = "verilator") -> tuple[Rate, np.ndarray]:
    """Return beats per cycle from stored vectors to frames, including headers and tags, and the
    beats of the frames. The requesters take turns."""
    block = StorePath(config)
    answer = _by_id(block.misses.payload.shape())
    running = load(block, f"store_path_{config.name}", engine,
                   recipe=f"StorePath({config!r})").instance()
    running.set_signal("vector_beats", 1)
    running.set_signal("node", config.nodes - 1)
    requests = _requests(samples, requesters, config.hold_vectors)
    start = settle(running)
    running.push("requests", requests, start)
    next_free, frames, last = 0, [], start
    limit = start + 64 * len(requests) + 100_000
    while running.waiting("requests") or running.waiting("fills") or not _at_rest(running):
        if running.cycle > limit:
            raise RuntimeError(f"no end after {limit - start} cycles")
        running.run(running.cycle + _QUANTUM)
        next_free = _answer(running, answer, next_free)
        beats, cycles = running.pop("o")
        frames.append(beats)
        last = int(cycles[-1]) if len(cycles) else last
    joined = np.concatenate(frames)
    return Rate("store to frames", len(joined), last + 1 - start), joined


def _at_rest(engine: Engine) -> bool:
    """Return whether the path is idle and no fill is waiting."""
    return bool(engine.get_signal("idle")) and not engine.waiting("fills")


def landing_path_rate(config: NicConfig, frames: np.ndarray, vectors: int,
                      engine: str = "verilator") -> Rate:
    """Return beats per cycle from frames, offered back to back, to vectors in slot order.

    ``frames``: beats of :func:`store_path_frames` for one requester, with all its ``vectors``.
    """
    block = LandingPath(config)
    running = load(block, f"landing_path_{config.name}", engine,
                   recipe=f"LandingPath({config!r})").instance()
    for name, value in (("vector_beats", 1), ("node", 0), ("nodes", config.nodes)):
        running.set_signal(name, value)
    start = settle(running)
    slots = pack(block.reserve.payload.shape(), vectors, kind=RecordKind.KEY_END, last=1,
                 sample=np.arange(vectors))
    running.push("reserve", slots, start)
    # Places are reserved before lookups leave, so the ring is full when vectors return.
    begin = start + config.hold_vectors + 64
    running.push("i", frames, begin)
    got, last = 0, begin
    limit = begin + 8 * len(frames) + 100_000
    while got < vectors:
        if running.cycle > limit:
            raise RuntimeError(f"{got} of {vectors} vectors after {limit - begin} cycles, "
                               f"{running.get_signal('bad_landings')} dropped")
        running.run(running.cycle + _QUANTUM)
        _, cycles = running.pop("o")
        got += len(cycles)
        last = int(cycles[-1]) if len(cycles) else last
    return Rate("frames to hold buffer", len(frames), last + 1 - begin)


def dot_interaction_rate(config: NicConfig, n: int, dimension: int, *, samples: int = 512,
                         itself: bool = False, engine: str = "verilator", seed: int = 1) -> Rate:
    """Return samples per cycle of the dot interaction of ``n`` vectors, the dense one included,
    from the first beat offered to the last beat of a result.

    ``ValueError`` if ``n`` or ``dimension`` exceeds the limits of ``config``.
    """
    if not 1 <= n <= config.interaction_vectors:
        raise ValueError(f"n must be between 1 and {config.interaction_vectors}, "
                         f"interaction_vectors of {config.name}, not {n!r}")
    if not 1 <= dimension <= config.max_dimension:
        raise ValueError(f"dimension must be between 1 and {config.max_dimension}, "
                         f"max_dimension of {config.name}, not {dimension!r}")
    running = load(DotInteraction(config), f"dot_interaction_{config.name}", engine,
                   recipe=f"DotInteraction({config!r})").instance()
    running.set_signal("itself", itself)
    beats = -(-dimension // LANES)
    place = np.arange(samples * n * beats)
    items = pack(VectorInBeat, len(place), sample=place // (n * beats),
                 vector_last=place % beats == beats - 1,
                 sample_last=place // beats % n == n - 1)
    values = np.random.default_rng(seed).standard_normal((len(place), LANES))
    items[:, :BEAT_BITS // 32] = values.astype(np.float32).view(np.uint32)
    start = settle(running)
    running.push("i", items, start)
    wanted = samples * (beats + -(-pair_count(n, itself=itself) // LANES))
    got, last, limit = 0, start, start + 32 * (len(items) + wanted) + 10_000
    while got < wanted:
        if running.cycle > limit:
            raise RuntimeError(f"{got} of {wanted} beats after {limit - start} cycles")
        running.run(running.cycle + _QUANTUM)
        _, cycles = running.pop("o")
        got += len(cycles)
        last = int(cycles[-1]) if len(cycles) else last
    return Rate("dot interaction", samples, last + 1 - start)
