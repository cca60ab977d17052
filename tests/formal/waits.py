"""The wait-for graph of the streams of two NICs that send to each other.

Nodes are streams, by the table of :mod:`rtl.links` and, within the training path, :data:`INNER`. A
stream is named after its source. An edge means that an item on a stream may have to wait until
another stream moves. Every input of a block waits for all outputs of the block by default. An input
of :data:`TAKEN` waits for no stream, which is a contract of its block. An input may also wait for
an arrival (:data:`WAITS`): requested data, which arrives once its sources have moved
(:data:`ARRIVALS`). The wire joins the NICs, and arrivals name streams of the peer. All nodes are
alike, so a cycle through several NICs is also a cycle of this graph.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import networkx as nx

from rtl.links import Link, links

__all__ = ["APART", "ARRIVALS", "BEGUN", "ENVIRONMENT", "INNER", "TAKEN", "WAITS", "Contract",
           "circle", "streams", "wait_graph"]


class Contract(NamedTuple):
    """A promise of a block or of the NIC's environment, and the test that proves it; empty if it is
    assumed."""

    promise: str
    test: str = ""


TAKEN = dict.fromkeys((
    "lookup_receiver.i", "remote_cache.fills", "local_cache.fills", "dedupe.fills",
    "query_checker.i", "dense_ring.vectors", "receiver.i", "partial_receiver.i",
    "returned_receiver.i", "step_counter.steps", "row_updater.vectors", "row_updater.states",
    "bag_receiver.i", "bag_landing.vectors", "owner_places.vectors", "bag_gradients.i"),
    Contract("takes what comes, whatever else stands still", "test_waits"))
"""Inputs that wait for no other stream."""

APART = {
    ("net_receiver.i", "net_receiver.links"): Contract(
        "a report is kept for each block of packets", "test_report_queue"),
    ("net_receiver.i", "net_receiver.arrived"): Contract(
        "what finds no room is dropped, and said again", "test_waits"),
    ("lost_misses.vectors", "lost_misses.o"): Contract(
        "vectors pass beside misses", "test_waits"),
    ("lost_bags.vectors", "lost_bags.o"): Contract(
        "vectors pass beside bags", "test_waits"),
    ("row_reads.headers", "row_reads.o"): Contract("headers pass beside lookups", "test_waits"),
    ("bag_repeats.slots", "bag_repeats.bags"): Contract(
        "the words of a bag have room behind those of earlier bags, whose slots have left"),
}
"""Pairs of an input and an output of one block; the input does not wait for the output."""

INNER = (
    Link("receiver.o", "local_source.fresh"),
    Link("receiver.flush", "local_source.over"),
    Link("local_source.o", "local_reducer.i"),
    Link("local_source.flush", "local_reducer.flush"),
    Link("local_reducer.o", "gradient_sender.terms"),
    Link("local_reducer.passed", "gradient_sender.passed"),
    Link("local_reducer.flushed", "gradient_sender.flushed"),
    Link("gradient_sender.remote", "departure.partials"),
    Link("gradient_sender.spilled", "departure.spilled.0"),
    Link("gradient_sender.own", "partial_arbiter.i.0"),
    Link("gradient_sender.own_end", "step_counter.own_end"),
    Link("gradient_sender.steps", "departure.steps.0"),
    Link("gradient_sender.reports", "departure.reports.0"),
    Link("partial_receiver.o", "partial_arbiter.i.1"),
    Link("partial_arbiter.o", "global_source.fresh"),
    Link("step_counter.complete", "global_source.over"),
    Link("global_source.o", "global_reducer.i"),
    Link("global_source.flush", "global_reducer.flush"),
    Link("global_reducer.o", "row_updater.sums"),
    Link("global_reducer.passed", "departure.spilled.1"),
    Link("global_reducer.flushed", "row_updater.flushed"),
    Link("row_updater.rows", "departure.rows"),
    Link("row_updater.state_requests", "departure.state_requests"),
    Link("row_updater.state_updates", "departure.state_updates"),
    Link("row_updater.reports", "departure.reports.1"),
    Link("row_updater.done", "step_barrier.own"),
    Link("step_barrier.steps", "departure.steps.1"),
    Link("step_barrier.reports", "departure.reports.2"),
)
"""Streams within :class:`rtl.training.TrainingPath`, between its blocks. The two return paths of
spilled beats leave ``returned_receiver`` by its single output (:data:`_RETURNED`)."""

_BAG_INNER = (Link("bag_ends.o", "departure.reports.3"),)
"""The END to the host of a step's bags of gradients."""

_RETURNED = (Link("returned_receiver.o", "local_source.returned"),
             Link("returned_receiver.o", "global_source.returned"))

_PORTS = {
    "gradients": "receiver.i", "returned": "returned_receiver.i", "states": "row_updater.states",
    "written": "rows_written.i", "partials": "partial_receiver.i", "steps": "step_counter.steps",
    "updated": "row_updater.vectors", "refused": "receiver.refused",
    "lookups": "row_updater.lookups", "write": "row_updater.write",
    "bags_sent": "gradient_sender.bags", "bags_arrived": "bag_arrivals.i",
    "bags_refused": "refused_arbiter.i.2", "bag_credits": "departure.steps.2",
    **{name: f"departure.{name}" for name in (
        "net_headers", "net_payload", "host_headers", "host_payload")},
}
"""Ports of the training path, by the ports of its blocks behind them."""

WAITS = {
    # Arriving vectors free places of the hold buffer, miss ids and entries.
    "hold_buffer.reserve": ("own vectors", "vectors of peers", "vectors of bags"),
    "remote_cache.lookups": ("vectors of peers",),
    "dedupe.requests": ("vectors for the dedupe table",),
    "local_cache.lookups": ("vectors of the GPU",),
    "local_cache.updates": ("vectors of the GPU",),
    "lookup_packager.i": ("credit of lookups",),
    "dense_ring.reserve": ("dense vectors",),
    # A sample's dense vector is joined with its pooled vectors.
    "concatenator.pooled": ("dense vectors",),
    "concatenator.dense": ("rest of a sample",),
    "gpu_rings.lists": ("lists consumed",),
    "link_sender.headers": ("acknowledgements",),
    "link_sender.payload": ("acknowledgements",),
    # Training.
    "dispatcher.i": ("the step before",),
    "dispatcher.shares": ("the step before",),
    "departure.partials": ("credit of partials",),
    "local_reducer.i": ("units that round",),
    "local_reducer.flush": ("units that round",),
    "local_source.fresh": ("spills of the local reduction",),
    "local_source.over": ("spills of the local reduction",),
    "global_source.fresh": ("spills of the global reduction",),
    "global_source.over": ("spills of the global reduction",),
    "row_updater.sums": ("rows to be updated", "states of rows"),
    "row_updater.flushed": ("rows to be updated", "states of rows", "rows written"),
    # Bags that pool at their owner.
    "bag_sender.starts": ("words of the bag", "ids of bags"),
    "bag_sender.segments": ("start of the bag",),
    "bag_packager.i": ("credit of bags",),
    "owner_places.foreign": ("vectors of bags of the GPU",),
    "owner_places.own": ("vectors of bags of the GPU",),
    # Bags with gradients.
    "refused_arbiter.i.2": ("receiver.refused",),
    "gradient_sender.flushed": ("bags of gradients",),
}
"""Arrivals that an input may wait for besides its block's outputs."""

ARRIVALS = {
    "own vectors": ("dispatcher.local", "vector_router.local"),
    "vectors of peers": ("remote_cache.misses", "peer lookup_receiver.o",
                         "peer vector_router.remote"),
    # In the header of a packet of vectors: the last answer carries the last credit.
    "credit of lookups": ("peer lookup_receiver.o", "peer vector_router.remote"),
    "vectors for the dedupe table": ("dedupe.misses", "local_cache.vectors"),
    "vectors of the GPU": ("local_cache.misses", "gpu_rings.headers", "gpu_rings.payload",
                           "host_rx"),
    "dense vectors": ("dense_ring.headers", "dense_ring.payload", "host_rx"),
    "rest of a sample": ("begun slot", "own vectors", "vectors of peers", "vectors of bags",
                         "hold_buffer.o"),
    # The kernel consumes lists independently of its other waits; slots are read by DMA.
    "lists consumed": ("gpu_rings.headers", "gpu_rings.payload", "host_rx"),
    "acknowledgements": ("net_tx", "peer net_receiver.links"),
    "credit of partials": ("peer partial_receiver.o", "peer departure.net_headers",
                           "peer departure.net_payload"),
    "spills of the local reduction": ("departure.host_headers", "departure.host_payload",
                                      "host_rx"),
    "spills of the global reduction": ("departure.host_headers", "departure.host_payload",
                                       "host_rx"),
    "rows to be updated": ("row_updater.lookups", "local_cache.updated"),
    "states of rows": ("row_updater.state_requests", "host_rx"),
    # The GPU waits for the gradients of the bags of a step.
    "rows written": ("departure.host_headers", "departure.host_payload", "host_rx", "bag_check.o",
                     "gradient_lists.o", "list_arbiter.o", "bag_lists.headers",
                     "bag_lists.payload", "bag_ends.o"),
    "bags of gradients": ("bag_gradients.o", "bag_gradients.sent", "bag_gradients.refused"),
    # All data of a step in the NICs, from its slots to its rows.
    "the step before": tuple(f"{where}{name}" for where in ("", "peer ") for name in (
        "host_rx", "slot of the open step", "hold_buffer.o", "receiver.o", "receiver.flush",
        "gradient_sender.remote", "gradient_sender.steps", "step_counter.complete",
        "global_reducer.flushed", "row_updater.done", "step_barrier.steps",
        "step_barrier.reports", "bag_gradients.o", "bag_arbiter.o", "bag_check.o")),
    # A bag that has its id waits for no other id.
    "ids of bags": ("bag_sender.o", "peer bag_check.o", "peer owner_places.answers",
                    "peer bag_router.remote"),
    "vectors of bags": ("dispatcher.bags", "bag_sender.own", "owner_places.answers",
                        "bag_router.local", "ids of bags"),
    "start of the bag": ("query_checker.o", "bag_repeats.o", "delivery.o", "dispatcher.bags"),
    # In the header of a packet of vectors: the last answer carries the last credit.
    # For bags of gradients, it comes in a step record.
    "credit of bags": ("peer bag_check.o", "peer owner_places.answers", "peer bag_router.remote",
                       "peer bag_credit_return.o"),
    "vectors of bags of the GPU": ("owner_places.o", "bag_lists.headers", "bag_lists.payload",
                                   "host_rx", "owner_places.answers"),
    # The sums of a step are read out when no data of it is in flight in any local reduction.
    "units that round": ("global_reducer.o",),
}
"""Streams that must move before the arrival; ``peer``: at the other NIC."""

BEGUN = {
    # The first slot of its sample has its dense vector's place, so the other slots wait for no
    # dense vector.
    "begun slot": ("begun place", "dispatcher.local", "dispatcher.remote", "dispatcher.bags"),
    # Samples get places in order and have at most half of them, so earlier samples leave.
    "begun place": ("own vectors", "vectors of peers", "vectors of bags", "hold_buffer.o"),
    # Slots are in the order of their steps, so no earlier slot waits for a later step.
    "slot of the open step": ("dispatcher.reserve", "dispatcher.local", "dispatcher.remote",
                              "dispatcher.dense", "dispatcher.bags"),
}
"""Slots that precede others of their stream, and their own waits."""

ENVIRONMENT = {
    "host_tx": Contract("the host takes what it is offered, whatever it waits for itself"),
    "host_rx": Contract("the host sends what it was asked for, whatever else it waits for"),
    "lists consumed": Contract("the GPU's kernel takes lists, whatever else it waits for"),
    "net_rx": Contract("the network brings each packet once, or the reliable link does"),
    "credit of lookups": Contract("a peer has no more lookups here than there are places",
                                  "test_credits"),
    "credit of partials": Contract("a peer is told in time of what was taken of its partials",
                                   "test_credit_return"),
    "credit of bags": Contract("a peer has no more bags here than there are places",
                               "test_credits"),
    "words of the bag": Contract("a bag's words are stored before its slot, in the same order"),
    "acknowledgements": Contract("a packet has room in the pool, as soon as others gave it back",
                                 "test_pool_room"),
    "begun slot": Contract("only the first slot of a sample waits for its dense vector",
                           "test_dispatcher"),
    "begun place": Contract("a sample has at most half of the places, and those before it leave"),
    "slot of the open step": Contract("the host sends steps in order, and slots keep it",
                                      "test_dispatcher"),
    "units that round": Contract("a step's sums are read out when all of it has come",
                                 "test_step_counter"),
    "payload of a packet": Contract("who sent a header sends the payload, waiting for nothing"),
}
"""Contracts behind arrivals and orders that streams do not show."""


def streams(training: bool, linked: bool, bags: bool, repeats: bool) -> list[Link]:
    """Return the links of a NIC, with those of the training path's blocks in place of its own."""
    def inner(place: str) -> str:
        block, _, port = place.partition(".")
        return _PORTS[port] if block == "training_path" else place

    own = [link._replace(source=inner(link.source), target=inner(link.target))
           for link in links(training, linked, bags, repeats)]
    return own + [*INNER, *_RETURNED] * training + [*_BAG_INNER] * (training and bags)


def wait_graph(training: bool = True, linked: bool = True, bags: bool = True,
               repeats: bool = True, *, without: Collection[str] = (),
               more: Mapping[str, Iterable[str]] = {}) -> nx.DiGraph:
    """Return the graph of two NICs, whose nodes are pairs (NIC, name).

    without: inputs of :data:`TAKEN`, or pairs of :data:`APART` with a space between them, whose
    contract is ignored.
    more: names and their additional waits.
    """
    graph, table = nx.DiGraph(), streams(training, linked, bags, repeats)
    leaving: dict[str, list[str]] = {}
    for link in table:
        leaving.setdefault(link.source.partition(".")[0], []).append(link.source)

    def add(here: int, name: str, others: Iterable[str]) -> None:
        for other in others:
            peer, plain = other.startswith("peer "), other.removeprefix("peer ")
            graph.add_edge((here, name), (here ^ peer, plain))

    for here in (0, 1):
        for link in table:
            if "." not in link.target:
                add(here, link.source, [link.target])
            elif link.target not in TAKEN or link.target in without:
                apart = {out for port, out in APART
                         if port == link.target and f"{port} {out}" not in without}
                add(here, link.source, (
                    *(out for out in leaving.get(link.target.partition(".")[0], ())
                      if out not in apart),
                    *(name for name in WAITS.get(link.target, ())
                      if training or name != "the step before")))
        add(here, "net_tx", ["peer net_rx"])
        for name, others in {**ARRIVALS, **BEGUN, **more}.items():
            add(here, name, others)
    return graph


def circle(graph: nx.DiGraph) -> list[str]:
    """Return the shortest cycle found in the graph, or an empty result without a cycle."""
    for part in sorted(nx.strongly_connected_components(graph), key=len):
        for node in part if len(part) > 1 or graph.has_edge(*[next(iter(part))] * 2) else ():
            way = min((nx.shortest_path(graph, other, node) for other in graph.successors(node)
                       if other in part), key=len)
            return [f"{nic}:{name}" for nic, name in [node, *way]]
    return []
