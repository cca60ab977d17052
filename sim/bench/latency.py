"""Latency of each block in cycles, measured and compared with its stated ``LATENCY``.

The blocks run on Amaranth's simulator with the sizes of ``tiny``; latencies do not depend on sizes.
"""

from collections.abc import Callable

from host.wire.layouts import unpack
from host.wire.packets import pack_records
from rtl.cache import LocalCache
from rtl.config import NicConfig, preset
from rtl.control.csr import RegisterBlock
from rtl.dedupe import DedupeTable
from rtl.float import FloatAdder
from rtl.formats import QueryRecord, RawBeat, RecordKind, SampleRecord
from rtl.interaction import DotInteraction, HoldBuffer, Pooler, ResultPackager
from rtl.keys.owner_split import OwnerSplit
from rtl.monitor.counters import CounterLayout
from rtl.query import Dispatcher, HostReporter, QueryChecker
from rtl.stream import Arbiter, PacketFIFO, SkidBuffer, StreamFIFO
from sim.bench.latency_network import NETWORK_CASES
from sim.bench.probe import Latency, Probe, stated
from sim.bench.rows import Job
from sim.engines import load

__all__ = ["LATENCY_CASES", "latency_jobs"]


def _skid(config: NicConfig) -> list[Latency]:
    probe = Probe(SkidBuffer(RawBeat))
    return [probe.latency("item", "the same item", "o", probe.push("i"))]


def _fifo(config: NicConfig) -> list[Latency]:
    probe = Probe(StreamFIFO(RawBeat, 16))
    return [probe.latency("item", "the same item", "o", probe.push("i"))]


def _packet_fifo(config: NicConfig) -> list[Latency]:
    probe = Probe(PacketFIFO(RawBeat, 16))
    return [probe.latency("last item of a packet", "its first item", "o",
                          probe.push("i"), probe.push("i", last=1, after=1))]


def _arbiter(config: NicConfig) -> list[Latency]:
    probe = Probe(Arbiter(RawBeat, 2))
    return [probe.latency("item", "the same item", "o", probe.push("i__1"))]


def _adder(config: NicConfig) -> list[Latency]:
    running = load(FloatAdder(), "FloatAdder", "pysim").instance(skip=False)
    running.run(16)
    one, two, cycles = 0x3F800000, 0x40000000, 0
    running.set_signal("a", one)
    running.set_signal("b", one)
    while running.get_signal("o") != two:
        running.run(running.cycle + 1)
        cycles += 1
        if cycles > 100:
            raise RuntimeError("FloatAdder: 1 + 1 is not 2 after 100 cycles")
    return [Latency("FloatAdder", "operands", "sum", cycles,
                    stated(FloatAdder, "operands", "sum"))]


def _owner_split(config: NicConfig) -> list[Latency]:
    probe = Probe(OwnerSplit(8, config.tables), node=0, nodes=2)
    probe.load_table()
    return [probe.latency("key", "its owner", "o", probe.push("i", user=1))]


def _query_checker(config: NicConfig) -> list[Latency]:
    probe = Probe(QueryChecker(config), node=0, nodes=2)
    probe.load_table()
    head = pack_records(SampleRecord, sample=7, slots=1, kind=int(RecordKind.SAMPLE))[0]
    key = pack_records(QueryRecord, row=5, kind=int(RecordKind.KEY_END))[0]
    return [probe.latency(
        "last record of a sample", "its first slot", "o",
        probe.push("i", data=int(head), records=1),
        probe.push("i", after=20, data=int(key), records=1, last=1))]


def _dispatcher(config: NicConfig) -> list[Latency]:
    probe = Probe(Dispatcher(), node=0)
    kind = int(RecordKind.KEY_END)
    return [
        probe.latency("slot", "own lookup", "local", probe.push("i", kind=kind, mine=1)),
        probe.latency("slot", "lookup to another node", "remote",
                      probe.push("i", kind=kind, owner=1))]


def _reporter(config: NicConfig) -> list[Latency]:
    probe = Probe(HostReporter(config))
    return [probe.latency("error", "its header", "headers", probe.push("errors", sample=1)),
            probe.latency("refused message", "its header", "headers",
                          probe.push("refused", status=1))]


def _cache(probe: Probe, lookups: str) -> list[Latency]:
    """Measure a miss, its fill and a hit."""
    miss = probe.latency("lookup that misses", "miss", "misses",
                         probe.push(lookups, key__row=5))
    # The first miss was never answered and stays pending, so the miss of another key is filled.
    records, _ = probe.drive("misses", probe.push(lookups, key__row=6))
    miss_id = int(unpack(probe.layout("misses"), records, "id")[0])
    fill = probe.latency("last beat of a fill", "vector", "vectors",
                         probe.push("fills", id=miss_id, last=1))
    hit = probe.latency("lookup that hits", "vector", "vectors",
                        probe.push(lookups, key__row=6))
    return [hit, miss, fill]


def _dedupe(config: NicConfig) -> list[Latency]:
    return _cache(Probe(DedupeTable(config), enable=1, vector_beats=1), "requests")


def _local_cache(config: NicConfig) -> list[Latency]:
    return _cache(Probe(LocalCache(config), enable=1, vector_beats=1,
                        sets=config.local_cache_sets), "lookups")


def _hold_buffer(config: NicConfig) -> list[Latency]:
    probe = Probe(HoldBuffer(config), vector_beats=1)
    return [probe.latency(
        "last beat of a vector", "its first beat in slot order", "o",
        probe.push("reserve", kind=int(RecordKind.KEY_END), last=1),
        probe.push("remote", last=1, after=20))]


def _pooler(config: NicConfig) -> list[Latency]:
    found = []
    for mean, end in ((0, "its sum"), (1, "its mean")):
        probe = Probe(Pooler(config), vector_beats=1, mean=mean)
        found.append(probe.latency(
            "bag of one vector", end, "o",
            probe.push("i", kind=int(RecordKind.KEY_END), beat_last=1, sample_last=1)))
    return found


def _dots(config: NicConfig) -> list[Latency]:
    found = []
    for dimension in (16, 32):
        probe = Probe(DotInteraction(config.with_fields(max_dimension=dimension, dot_units=1)))
        _, cycles = probe.drive("o", probe.push("i", vector_last=1),
                               probe.push("i", after=1, vector_last=1, sample_last=1))
        found.append(probe.with_stated(
            "last of two vectors", f"last beat of the result, max_dimension {dimension}",
            int(cycles[-1])))
    return found


def _results(config: NicConfig) -> list[Latency]:
    def last(probe: Probe):
        return probe.push("i", beat_last=1, bag_last_of_sample=1)

    probe = Probe(ResultPackager(config), vector_beats=1)
    return [
        probe.latency("last beat of a packet", "header", "headers", last(probe)),
        probe.latency("last beat of a packet", "tag beat", "payload", last(probe))]


def _registers(config: NicConfig) -> list[Latency]:
    block = RegisterBlock(config, {"dedupe": CounterLayout("requests")})
    probe = Probe(block)
    address = next(register.address for register in block.registers if register.name == "node")
    return [probe.with_stated(start, "answer", probe.access(address, write=start == "write"))
            for start in ("read", "write")]


LATENCY_CASES: dict[str, Callable[[NicConfig], list[Latency]]] = {
    "SkidBuffer": _skid, "StreamFIFO": _fifo, "PacketFIFO": _packet_fifo, "Arbiter": _arbiter,
    "FloatAdder": _adder, "OwnerSplit": _owner_split, "QueryChecker": _query_checker,
    "Dispatcher": _dispatcher, "HostReporter": _reporter, "DedupeTable": _dedupe,
    "LocalCache": _local_cache, **NETWORK_CASES, "HoldBuffer": _hold_buffer, "Pooler": _pooler,
    "DotInteraction": _dots, "ResultPackager": _results, "RegisterBlock": _registers,
}
"""For each block, the function that measures its latencies for a configuration."""


def latency_jobs() -> list[Job]:
    """Return a job for each block."""
    config = preset("tiny")

    def job(name: str) -> Job:
        return Job("latency", f"latency of {name}", lambda progress: LATENCY_CASES[name](config))

    return [job(name) for name in LATENCY_CASES]
