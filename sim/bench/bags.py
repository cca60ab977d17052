"""Rows of owner-pooled bags, in lookups per cycle, at the requester and at the owner.

The requester has queries at all times, for 15 owners. The packets that it sends are the input of an
owner of all tables, back to back. Each bag is answered with a vector of one beat, ``FILL_LATENCY``
cycles after its packet, one vector per cycle.
"""

from collections.abc import Callable

import numpy as np

from host.batching.repeats import repeated_bags
from host.measurements.published import flattening
from host.samples import Samples
from host.wire.bags import bag_queries, parse_bags
from host.wire.layouts import pack, unpack
from host.wire.packets import parse_header, payload_records, query_packets, records_to_beats
from rtl.bags.layouts import BagBeat
from rtl.config import BEAT_BITS, NicConfig, preset
from rtl.formats import (
    CREDIT_BITS,
    RECORDS_PER_BEAT,
    DescriptorKind,
    FrameInfo,
    PeerBeat,
    PoolPlace,
    RawBeat,
    RecordBeat,
    TableDescriptor,
    TaggedBeat,
    VectorBeat,
    words_of,
)
from sim.bench.bag_paths import OwnerPath, RequesterPath
from sim.bench.rates import FILL_LATENCY, Rate, settle
from sim.bench.rows import Job, Progress, Row
from sim.engines import Engine, load

__all__ = ["OWNER_BAGS", "REPEAT_WORDS", "BagPacket", "bag_jobs", "bag_samples", "owner_rate",
           "requester_rate"]

_REQUESTER, _OWNER = 4.0, 8.0
"""Fewest lookups per cycle."""

OWNER_BAGS = 1024
"""``owner_bags`` of the NIC."""

REPEAT_WORDS = 8192
"""``repeat_words`` of a NIC that finds repeated bags."""

_RUN = 10
"""Consecutive samples with the same bags in half of the tables."""

_ROWS = 1 << 20
"""Rows of a table."""

_KEYS = 100_000
"""Lookups of a row, at least."""

_LAST = RawBeat["last"].offset

_QUANTUM = 64
"""Cycles between two looks at the credit of the queries; their buffer lasts for many more."""

BagPacket = tuple[int, np.ndarray]
"""A packet of bags: its destination, and its words, uint64 ``[n]``."""


def bag_samples(keys: np.ndarray, count: int, seed: int = 1, run: int = 1) -> Samples:
    """Return ``count`` samples with ``keys[t]`` random keys in each table t.

    run: consecutive samples with the same bag in each table of an even number.
    """
    lengths = np.tile(np.asarray(keys, np.int32), (count, 1))
    tables = np.repeat(np.tile(np.arange(len(keys), dtype=np.int32), count), lengths.reshape(-1))
    rows = np.random.default_rng(seed).integers(_ROWS, size=(count, int(np.sum(keys))))
    same = np.repeat(np.arange(len(keys)) % 2 == 0, keys)
    rows[:, same] = rows[np.arange(count) // run * run][:, same]
    return Samples(np.zeros((count, 0), np.float32), np.zeros(count, np.float32), lengths, tables,
                   rows.reshape(-1))


def requester_rate(config: NicConfig, samples: Samples,
                   engine: str = "verilator") -> tuple[Rate, float, list[BagPacket]]:
    """Return lookups per cycle from queries to packets of bags, their bound, and the packets.

    The bound is a record, or the words of a bag in one beat, per cycle.

    All tables pool at their owners, in turn the nodes 1, 2, ... With ``config.repeat_words``, a bag
    that repeats the bag of the sample before does not leave; its lookups count.

    ``RuntimeError`` unless each other bag leaves, and its vector lands in its place.
    """
    tables = np.arange(samples.table_count)
    running = _load(RequesterPath, config, engine, tables, 1 + tables % (config.nodes - 1))
    words, items = bag_queries(samples, 0, np.full(len(tables), _ROWS))
    queries = query_packets(words, node=0, step=0, payload_beats=config.net_payload_beats,
                            items=items)
    counts = np.array([parse_header(packet[0]).count for packet in queries])
    beats = _record_beats(RecordBeat, [
        (0, payload_records(packet[1:], count)) for packet, count in zip(queries, counts)])
    sent = 0

    def feed() -> None:
        """Send beats for which the checker has room."""
        nonlocal sent
        inside = (sent - running.get_signal("consumed")) % (1 << CREDIT_BITS)
        more = beats[sent:sent + config.query_beats - inside]
        running.push("i", more)
        sent += len(more)

    def answer(packet: BagPacket) -> np.ndarray:
        node, bags = packet[0], parse_bags(packet[1])
        return pack(PeerBeat, len(bags), tag=bags.landings, source=node, last=1)

    # Each bag is a slot, and reserves a place.
    leaves = samples.bag_lengths > 0
    if config.repeat_positions:
        leaves &= ~repeated_bags(samples, 1)
    cycles, packets, landed = _drive(running, int(leaves.sum()), feed, answer)
    places = unpack(TaggedBeat, landed, "tag").astype(np.int64)
    if not np.array_equal(np.sort(places), np.sort(np.flatnonzero(leaves) % config.hold_vectors)):
        raise RuntimeError("a vector is not in the place of its bag")
    # Each packet begins at a beat.
    ends = np.cumsum(counts)
    packet_of = np.searchsorted(ends, items, side="right")
    least = _cycles(items - (ends - counts)[packet_of], np.diff(items, append=len(words)))
    keys = len(samples.rows)
    return Rate("bags at the requester", keys, cycles), keys / least, packets


def owner_rate(config: NicConfig, tables: int, packets: list[BagPacket],
               engine: str = "verilator") -> tuple[Rate, float]:
    """Return lookups per cycle from ``packets`` to lists for the GPU, and their bound, of an owner
    of all ``tables``.

    The bound is the words of a bag in one beat per cycle. The destination of a packet is taken as
    its source. ``RuntimeError`` unless each bag leaves, and its vector returns to its source and
    landing.
    """
    running = _load(OwnerPath, config, engine, np.arange(tables), np.zeros(tables, np.int64))
    running.push("i", _record_beats(BagBeat, packets))
    came = [parse_bags(words) for _, words in packets]
    asked = np.concatenate([
        node << 16 | bags.landings for (node, _), bags in zip(packets, came, strict=True)])

    def answer(packet: BagPacket) -> np.ndarray:
        places = parse_bags(packet[1]).landings
        return pack(TaggedBeat, len(places), tag=places, last=1)

    cycles, _, answers = _drive(running, len(asked), lambda: None, answer)
    node, landing = (unpack(VectorBeat, answers, f"tag.{name}").astype(np.int64)
                     for name in ("node", "landing"))
    if (np.sort(node << 16 | landing) != np.sort(asked)).any():
        raise RuntimeError("an answer does not return to its bag")
    keys, least = sum(len(bags.rows) for bags in came), 0
    for bags in came:
        sizes = 1 + words_of(bags.lengths, bags.wide, 0)
        least += _cycles(np.cumsum(sizes) - sizes, sizes)
    return Rate("bags at the owner", keys, cycles), keys / least


def _cycles(firsts: np.ndarray, sizes: np.ndarray) -> int:
    """Return the beats of each item, added: of ``sizes`` words from word ``firsts`` on."""
    return int(((firsts + sizes - 1) // RECORDS_PER_BEAT - firsts // RECORDS_PER_BEAT + 1).sum())


def _load(path: type, config: NicConfig, engine: str, tables: np.ndarray,
          owners: np.ndarray) -> Engine:
    """Return the running ``path`` with descriptors of ``tables`` that pool at their ``owners``."""
    running = load(path(config), f"{path.__name__}_{config.name}", engine,
                   recipe=f"{path.__name__}({config!r})").instance(skip=False)
    settle(running)
    descriptors = pack(TableDescriptor, len(tables), valid=1, kind=int(DescriptorKind.TABLE),
                       pool=int(PoolPlace.OWNER), owner=owners, owners=1, rows_low=_ROWS)
    for table, words in zip(tables.tolist(), descriptors.tolist(), strict=True):
        for word, value in enumerate(words):
            for name, number in (("en", 1), ("table", table), ("word", word), ("data", value)):
                running.set_signal(f"write_{name}", number)
            running.run(running.cycle + 1)
    running.set_signal("write_en", 0)
    running.run(running.cycle + 1)
    return running


def _record_beats(layout, packets: list[BagPacket]) -> np.ndarray:
    """Return the payload beats of ``packets`` as a parser outputs them."""
    sizes = np.array([len(words) for _, words in packets])
    beats = -(-sizes // RECORDS_PER_BEAT)
    last = np.zeros(int(beats.sum()), np.int64)
    last[np.cumsum(beats) - 1] = 1
    first = np.roll(last, 1)
    records = np.full(len(last), RECORDS_PER_BEAT)
    records[last == 1] = sizes - RECORDS_PER_BEAT * (beats - 1)
    fresh = {"fresh": first} if "fresh" in layout.members else {}
    found = pack(layout, len(last), records=records, last=last, **fresh,
                 source=np.repeat([node for node, _ in packets], beats))
    found[:, :BEAT_BITS // 32] = np.concatenate([records_to_beats(words) for _, words in packets])
    return found


def _drive(running: Engine, bags: int, feed: Callable[[], None],
           answer: Callable[[BagPacket], np.ndarray]) -> tuple[int, list[BagPacket], np.ndarray]:
    """Run a path until ``bags`` vectors have left, and answer its packets.

    Return the cycles to the end of the last packet, the packets, and the vectors at ``o``.
    """
    start = next_free = running.cycle
    packets: list[BagPacket] = []
    vectors: list[np.ndarray] = []
    heads, rest, end, got = np.zeros((0, pack(FrameInfo).shape[1]), np.uint32), [], 0, 0
    limit = start + 64 * bags + 2 * FILL_LATENCY
    while got < bags:
        if running.cycle > limit:
            raise RuntimeError(f"{got} of {bags} vectors in {limit - start} cycles")
        feed()
        running.run(running.cycle + _QUANTUM)
        heads = np.concatenate((heads, running.pop("headers")[0]))
        for beat, cycle in zip(*running.pop("payload"), strict=True):
            rest.append(beat)
            if not beat[_LAST // 32] >> _LAST % 32 & 1:
                continue
            count, node = (int(unpack(FrameInfo, heads[:1], name)[0])
                           for name in ("count", "destination"))
            packets.append((node, payload_records(
                np.stack(rest)[:, :BEAT_BITS // 32], count).copy()))
            heads, rest, end = heads[1:], [], int(cycle)
            beats = answer(packets[-1])
            next_free = max(next_free, end + FILL_LATENCY)
            running.push("vectors", beats, next_free + np.arange(len(beats)))
            next_free += len(beats)
        out, _ = running.pop("o")
        vectors.append(out)
        got += len(out)
    return end + 1 - start, packets, np.concatenate(vectors)


def bag_jobs() -> list[Job]:
    """Return the jobs of bags: the mix of MLPerf's DLRM-DCNv2, bags of 20 keys, and of 100; and
    bags of 20 keys of which many repeat."""
    config = preset("kaggle").with_fields(name="kaggle_bags", owner_bags=OWNER_BAGS)
    dcnv2 = np.array(flattening().hot)
    mixes = [("DCNv2", dcnv2), ("20 keys", np.full(len(dcnv2), 20)),
             ("100 keys", np.full(len(dcnv2), 100))]

    def job(name: str, keys: np.ndarray) -> Job:
        def rows(progress: Progress) -> list[Row]:
            at_requester, most, packets = requester_rate(
                config, bag_samples(keys, -(-_KEYS // int(keys.sum()))))
            at_owner = owner_rate(config, len(keys), packets)
            what = (f"{len(keys)} bags and {keys.sum():,} keys a sample, {len(packets):,} packets, "
                    f"vectors of a beat after {FILL_LATENCY} cycles")
            return [Row(f"owner-pooled lookups at the {place}, {name}", rate.per_cycle,
                        "lookups/cycle", target, bound=bound,
                        note=f"{what}; {rate.items:,} in {rate.cycles:,} cycles")
                    for place, (rate, bound), target in (
                        ("requester", (at_requester, most), _REQUESTER),
                        ("owner", at_owner, _OWNER))]
        return Job("bags", f"owner-pooled lookups, {name}", rows)

    def repeated(progress: Progress) -> list[Row]:
        keys = mixes[1][1]
        samples = bag_samples(keys, -(-_KEYS // int(keys.sum())), run=_RUN)
        rate, most, packets = requester_rate(config.with_fields(
            name="kaggle_repeats", repeat_words=REPEAT_WORDS), samples)
        again = repeated_bags(samples, 1).mean()
        return [Row("owner-pooled lookups at the requester, 20 keys, repeated bags",
                    rate.per_cycle, "lookups/cycle", _REQUESTER, bound=most,
                    note=f"{again:.0%} of bags repeat and do not leave, {len(packets):,} packets; "
                         f"{rate.items:,} in {rate.cycles:,} cycles")]

    return [*(job(*mix) for mix in mixes),
            Job("bags", "owner-pooled lookups, 20 keys, repeated bags", repeated)]
