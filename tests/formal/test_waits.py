"""Proof of deadlock freedom, in a NIC and between NICs, under the contracts of the blocks.

The graph is made from the table of links (:mod:`tests.formal.waits`). This file proves the
contracts that keep the graph acyclic, for blocks as built for a NIC, or in the tests named by the
table. Each contract is necessary: without it the graph has a cycle.
"""

import itertools
import re
from pathlib import Path

import pytest
from amaranth.hdl import Signal, Value
from amaranth.lib import stream, wiring

from rtl.bags import BagGradients, BagLanding, BagReceiver, LostBags, OwnerPlaces
from rtl.cache import LocalCache, RemoteCache
from rtl.cache.cache import EmbeddingCache
from rtl.cache.lost_misses import LostMisses
from rtl.config import preset
from rtl.formats import BEAT_INDEX_BITS
from rtl.gradient import GradientReceiver, PartialReceiver
from rtl.gradient.updater import RowUpdater
from rtl.interaction import DenseRing
from rtl.network import FrameReceiver, LookupReceiver
from rtl.query import QueryChecker
from rtl.rings import RowReads
from rtl.training import TrainingPath
from rtl.training.step_counter import StepCounter
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.formal.waits import (
    APART,
    ENVIRONMENT,
    INNER,
    TAKEN,
    circle,
    streams,
    wait_graph,
)
from tests.mutants import broken, variant

CONFIG = preset("tiny").with_fields(training=True, link=True)
SMALL = CONFIG.with_fields(
    tables=4, max_dimension=16, remote_cache_rows=4, remote_cache_ways=2, remote_in_flight=4,
    hold_vectors=8, local_cache_rows=4, local_cache_ways=2, misses_in_flight=4,
    dedupe_in_flight=4)
"""For caches, whose proofs take minutes in larger sizes."""
PAIRS = [f"{port} {out}" for port, out in APART]
BAGS = preset("tiny").with_fields(owner_bags=16)
ALL = [options for options in itertools.product((False, True), repeat=4)
       if options[2] or not options[3]]

def entries() -> EmbeddingCache:
    """Return a small cache that may be cleared at any time, like that of the dedupe table."""
    return EmbeddingCache(2, 1, rows=8, ways=2, in_flight=2, waiters=2, vector_beats=1,
                          hash_key=lambda key: key)


BLOCKS = {
    "lookup_receiver.i": (LookupReceiver, CONFIG), "remote_cache.fills": (RemoteCache, SMALL),
    "local_cache.fills": (LocalCache, SMALL), "dedupe.fills": (entries,),
    "query_checker.i": (QueryChecker, CONFIG), "dense_ring.vectors": (DenseRing, CONFIG),
    "receiver.i": (GradientReceiver, CONFIG), "partial_receiver.i": (PartialReceiver, CONFIG),
    "returned_receiver.i": (PartialReceiver, CONFIG, "host"),
    "step_counter.steps": (StepCounter, CONFIG.nodes), "row_updater.vectors": (RowUpdater, CONFIG),
    "row_updater.states": (RowUpdater, CONFIG), "bag_receiver.i": (BagReceiver, BAGS),
    "bag_landing.vectors": (BagLanding, BAGS), "owner_places.vectors": (OwnerPlaces, BAGS),
    "bag_gradients.i": (BagGradients, BAGS.with_fields(training=True)),
}
"""The blocks of the inputs that never wait, and their constructors."""

SOON = {"dedupe.fills": 4, "row_updater.states": 16}
"""Cycles until such an input takes an item, unless at once."""


DEPTH = 40
"""Cycles within which a mutant is detected, including the sweep after reset."""


@pytest.mark.parametrize("training, linked, bags, repeats", ALL)
def test_no_circle(training, linked, bags, repeats):
    assert circle(wait_graph(training, linked, bags, repeats)) == []


@pytest.mark.parametrize("contract", [*TAKEN, *PAIRS])
def test_each_contract_counts(contract):
    assert circle(wait_graph(without={contract}))


@pytest.mark.parametrize("name, other", [
    ("host_parser.vectors", "hold_buffer.o"), ("net_parser.vectors", "remote_cache.misses"),
    ("pooled_router.vectors", "dispatcher.dense"), ("vector_router.local", "delivery.o"),
    ("local_cache.updated", "local_source.o"), ("begun slot", "dispatcher.dense"),
    ("net_rx", "net_tx"), ("net_parser.steps", "departure.net_headers"),
    ("host_parser.bag_vectors", "hold_buffer.o"), ("net_parser.bags", "owner_places.answers"),
    ("owner_places.answers", "dispatcher.bags"), ("vectors of bags of the GPU", "bag_sender.o"),
], ids=lambda name: name.replace(" ", "-"))
def test_a_circle_is_found(name, other):
    """A cycle is found if any stream gets one more wait."""
    found = circle(wait_graph(more={name: [other]}))
    assert found and found[0] == found[-1]


def test_a_link_too_many_is_found(monkeypatch):
    """A cycle is found if results of samples pass the queue of lookups to peers."""
    from rtl import links as table
    extra = table.Link("interaction.o", "lookup_packager.i"), table.Link(
        "lookup_packager.payload", "result_frames.i")
    monkeypatch.setattr(table, "LINKS", (*(
        link for link in table.LINKS if link.source != "interaction.o"), *extra))
    assert circle(wait_graph())


def test_the_training_path_has_all_streams():
    """Every stream of a block of the path, and no other stream, is an end of a link."""
    path = TrainingPath(CONFIG.with_fields(owner_bags=16))
    blocks = {**path._blocks, "receiver": path._receiver, "departure": path._departure}
    found = {"source": set(), "target": set()}
    for name, block in blocks.items():
        for port, member in block.signature.members.items():
            if member.is_signature and isinstance(inner := member.signature, (
                    stream.Signature, wiring.FlippedSignature)):
                end = "target" if isinstance(inner, wiring.FlippedSignature) else "source"
                places = member.dimensions[0] if member.dimensions else 0
                found[end] |= {f"{name}.{port}.{k}" for k in range(places)} or {f"{name}.{port}"}
    table = [link for link in streams(True, True, True, True)
             if any(end.partition(".")[0] in blocks for end in link[:2])]
    bank = {f"{reducer}.{port}" for reducer in ("local_reducer", "global_reducer")
            for port in ("sums", "terms")}
    for end, places in found.items():
        named = {getattr(link, end) for link in table}
        assert {place for place in named if place.partition(".")[0] in blocks} == places - bank
    assert len(INNER) == len({link.source for link in INNER})


def test_contracts_name_tests():
    tests = Path(__file__).parent
    for contract in (*TAKEN.values(), *APART.values(), *ENVIRONMENT.values()):
        assert not contract.test or (tests / f"{contract.test}.py").exists()
        assert re.fullmatch(r"[^.]+", contract.promise)


def taken(block: wiring.Component, port: str, soon: int = 0, eager: str = "") -> Bench:
    """Return a bench of ``block`` among free neighbours; ``port`` takes every item.

    It must do so from the first take on, because tables are swept after reset. There is no
    ``flush``: it begins when all requested vectors have arrived. A vector that was not requested
    then waits for a sweep, which waits for no stream.

    soon: most cycles of a wait.
    eager: an output whose items are all taken at once.
    """
    bench = Bench()
    bench.m.submodules.dut = block
    for path, member, value in block.signature.flatten(block):
        if path == (eager, "ready"):
            bench.m.d.comb += value.eq(1)
        elif member.flow is wiring.In:
            value = Value.cast(value)
            bench.m.d.comb += value.eq(0 if path == ("flush",) else bench.free(len(value)))
    entered, begun = getattr(block, port), Signal()
    with bench.m.If(entered.ready):
        bench.m.d.sync += begun.eq(1)
    bench.within("taken", soon, begun & entered.valid, entered.ready)
    return bench


@pytest.mark.thorough
@pytest.mark.parametrize("place", TAKEN)
def test_taken(place):
    block, *arguments = BLOCKS[place]
    verdict = prove(taken(block(*arguments), place.partition(".")[2], SOON.get(place, 0)),
                    seconds=100)
    assert verdict.holds, verdict


def test_a_receiver_takes_each_frame():
    verdict = prove(taken(FrameReceiver(CONFIG, CONFIG.net_framing, training=True, link=True), "i"))
    assert verdict.holds, verdict


def test_headers_pass_beside_reads():
    verdict = prove(taken(RowReads(4), "headers", eager="header_out"))
    assert verdict.holds, verdict


@pytest.mark.parametrize("block, config, bits", [
    (LostMisses, CONFIG, CONFIG.vector_beats.bit_length()), (LostBags, BAGS, BEAT_INDEX_BITS)])
def test_vectors_pass_beside_questions(block, config, bits):
    """Vectors wait for at most one vector of zeros, and for no miss or bag."""
    verdict = prove(taken(block(config), "vectors", 1 << bits, eager="fills"), seconds=100)
    assert verdict.holds, verdict


@pytest.mark.thorough
@pytest.mark.parametrize("place, part, old, new", [
    ("lookup_receiver.i", LookupReceiver, "self.i.ready.eq(swept)",
     "self.i.ready.eq(swept & self.o.ready)"),
    ("local_cache.fills", EmbeddingCache, "self.fills.ready.eq(~sweeping)",
     "self.fills.ready.eq(~sweeping & self.misses.ready)"),
    ("step_counter.steps", StepCounter, "self.steps.ready.eq(1)", "self.steps.ready.eq(self.open)"),
], ids=["behind-lookups-before", "behind-misses", "while-open"])
def test_broken_taken(place, part, old, new):
    block, *arguments = BLOCKS[place]
    mutant = broken(part, old, new)
    made = mutant if part is block else variant(block, **{part.__name__: mutant})
    verdict = prove(taken(made(*arguments), place.partition(".")[2], SOON.get(place, 0)),
                    depth=DEPTH)
    assert verdict.broken == ("taken",), verdict
