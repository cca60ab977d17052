"""Links: every stream between the blocks of the NIC and at its edges, once.

The table wires the blocks (:mod:`rtl.nic`) and names what the probes show
(:mod:`rtl.monitor.channels`).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from amaranth.hdl import Cat, Module, Value

from rtl.formats import FrameInfo, Key, LookupRecord

__all__ = ["BAG_LINKS", "LINKS", "TRAINING_LINKS", "Link", "join", "links", "port_at"]


class Link(NamedTuple):
    """A stream from ``source`` to ``target``.

    Each is ``block.port``, where ``port.N`` is element N of an array, or the name of an edge.
    ``fields`` maps the payload of the source to fields of the target's payload, if they differ.
    """

    source: str
    target: str
    fields: Callable[[Any], dict[str, Any]] | None = None

    @property
    def name(self) -> str:
        """Name of the stream: its source, or the edge by which it leaves."""
        return self.source if "." in self.target else self.target

    @property
    def taker(self) -> str:
        """The receiving block, or the neighbour behind the edge."""
        block, _, _port = self.target.partition(".")
        return {"net_tx": "network", "host_tx": "host"}.get(block, block)


def _looked_up(miss) -> dict[str, Any]:
    return {"key": miss.key, "meta": miss.id}


def _listed(miss) -> dict[str, Any]:
    # A LookupRecord whose landing is the miss id.
    return {"record": Cat(miss.key, miss.id)}


def _found(vector) -> dict[str, Any]:
    return {"id": vector.meta, "data": vector.data, "last": vector.last}


def _to_host(info) -> dict[str, Any]:
    """Fields of a packet to a queue of the host that answers no sample."""
    return {name: info[name] for name in FrameInfo.members}


def _fetched(vector) -> dict[str, Any]:
    return {"id": vector.tag, "data": vector.data, "last": vector.last}


LINKS = (
    # Arrival: packets are checked whole, then split.
    Link("host_rx", "host_receiver.i"),
    Link("net_rx", "net_receiver.i"),
    Link("host_receiver.o", "gpu_rings.i"),
    Link("gpu_rings.o", "host_parser.i"),
    Link("host_receiver.refused", "host_reporter.refused"),
    Link("net_receiver.o", "net_parser.i"),
    Link("host_parser.records", "query_checker.i"),
    Link("host_parser.vectors", "local_cache.fills", _fetched),
    Link("host_parser.dense", "dense_ring.vectors"),
    Link("host_parser.opens", "ring_messages.opens"),
    Link("host_parser.flushed", "ring_messages.flushes"),
    # Requester: samples to slots, slots to places and lookups.
    Link("query_checker.o", "delivery.i"),
    Link("delivery.o", "dispatcher.i"),
    Link("delivery.shares", "dispatcher.shares"),
    Link("delivery.indices", "index_packager.i"),
    Link("query_checker.errors", "host_reporter.errors"),
    Link("dispatcher.reserve", "hold_buffer.reserve"),
    Link("dispatcher.local", "request_fifo.i"),
    Link("dispatcher.remote", "remote_cache.lookups"),
    Link("dispatcher.dense", "dense_ring.reserve"),
    Link("remote_cache.misses", "lookup_packager.i"),
    Link("remote_cache.vectors", "hold_buffer.remote"),
    # Owner: own and received lookups through dedupe table and local cache.
    Link("net_parser.records", "lookup_receiver.i"),
    Link("net_parser.vectors", "remote_cache.fills"),
    Link("lookup_receiver.o", "lookup_check.i"),
    Link("lookup_check.o", "request_arbiter.i.1"),
    Link("request_fifo.o", "request_arbiter.i.0"),
    Link("request_arbiter.o", "dedupe.requests"),
    Link("dedupe.misses", "local_cache.lookups", _looked_up),
    Link("dedupe.vectors", "vector_router.i"),
    # GPU: misses of the local cache leave in lists or as row reads, and return by miss id.
    Link("local_cache.misses", "row_reads.i", _listed),
    Link("row_reads.o", "request_packager.i"),
    Link("local_cache.vectors", "dedupe.fills", _found),
    # Vectors to their requesters, and into their reserved places.
    Link("vector_router.local", "hold_buffer.local"),
    Link("vector_router.remote", "vector_packager.i"),
    # Results: pooled vectors alone, or joined with the requested dense vectors.
    Link("hold_buffer.o", "pooler.i"),
    Link("pooler.o", "pooled_router.i"),
    Link("pooled_router.packets", "result_packager.i"),
    Link("pooled_router.vectors", "concatenator.pooled"),
    Link("dense_ring.o", "concatenator.dense"),
    Link("concatenator.o", "interaction.i"),
    Link("interaction.o", "result_frames.i"),
    # Steps of the host: opened, completed.
    Link("ring_messages.steps", "completion_writer.opens"),
    Link("completion_writer.refused", "host_reporter.opens_refused"),
    # Departure.
    Link("lookup_packager.headers", "net_mux.headers.0"),
    Link("lookup_packager.payload", "net_mux.payload.0"),
    Link("vector_packager.headers", "net_mux.headers.1"),
    Link("vector_packager.payload", "net_mux.payload.1"),
    Link("request_packager.headers", "gpu_rings.lists"),
    Link("gpu_rings.list_headers", "row_reads.headers"),
    Link("row_reads.header_out", "host_mux.headers.0"),
    Link("request_packager.payload", "host_mux.payload.0"),
    Link("result_packager.headers", "host_mux.headers.2"),
    Link("result_packager.payload", "host_mux.payload.2"),
    Link("dense_ring.headers", "host_mux.headers.1", _to_host),
    Link("dense_ring.payload", "host_mux.payload.1"),
    Link("result_frames.headers", "host_mux.headers.3"),
    Link("result_frames.payload", "host_mux.payload.3"),
    Link("host_reporter.headers", "host_mux.headers.4"),
    Link("host_reporter.payload", "host_mux.payload.4"),
    Link("index_packager.headers", "host_mux.headers.5"),
    Link("index_packager.payload", "host_mux.payload.5"),
    Link("completion_writer.headers", "host_mux.headers.6"),
    Link("completion_writer.payload", "host_mux.payload.6"),
    Link("gpu_rings.headers", "host_mux.headers.7"),
    Link("gpu_rings.payload", "host_mux.payload.7"),
    Link("net_mux.header_out", "net_assembler.headers"),
    Link("net_mux.payload_out", "net_assembler.payload"),
    Link("host_mux.header_out", "host_assembler.headers"),
    Link("host_mux.payload_out", "host_assembler.payload"),
    Link("net_assembler.o", "net_tx"),
    Link("host_assembler.o", "host_tx"),
)
"""Each stream of :class:`rtl.nic.SmartNic`, in the order of the probes' bits."""

TRAINING_LINKS = (
    Link("host_parser.gradients", "training_path.gradients"),
    Link("host_parser.returned", "training_path.returned"),
    Link("host_parser.states", "training_path.states"),
    Link("host_parser.written", "training_path.written"),
    Link("net_parser.partials", "training_path.partials"),
    Link("net_parser.steps", "training_path.steps"),
    Link("training_path.refused", "host_reporter.gradients_refused"),
    Link("training_path.lookups", "local_cache.updates"),
    Link("local_cache.updated", "training_path.updated"),
    Link("training_path.write", "local_cache.write"),
    Link("training_path.net_headers", "net_mux.headers.2"),
    Link("training_path.net_payload", "net_mux.payload.2"),
    Link("training_path.host_headers", "host_mux.headers.8", _to_host),
    Link("training_path.host_payload", "host_mux.payload.8"),
)
"""The additional streams of a NIC that trains."""

RELIABLE_LINKS = (
    Link("net_mux.header_out", "link_sender.headers"),
    Link("net_mux.payload_out", "link_sender.payload"),
    Link("link_sender.header_out", "net_assembler.headers"),
    Link("link_sender.payload_out", "net_assembler.payload"),
    Link("net_receiver.links", "link_sender.links"),
    Link("net_receiver.arrived", "link_sender.arrived"),
    Link("remote_cache.misses", "lost_misses.misses"),
    Link("lost_misses.o", "lookup_packager.i"),
    Link("net_parser.vectors", "lost_misses.vectors"),
    Link("lost_misses.fills", "remote_cache.fills"),
)
"""The streams of a reliable link; they replace the streams of the same sources."""


BAG_LINKS = (
    # Requester: bags to their owners, their vectors to the reserved places.
    Link("query_checker.segments", "bag_sender.segments"),
    Link("dispatcher.bags", "bag_sender.starts"),
    Link("bag_landing.id", "bag_sender.id"),
    Link("bag_sender.o", "bag_packager.i"),
    Link("bag_sender.own", "owner_places.own"),
    Link("net_parser.bag_vectors", "bag_landing.vectors"),
    Link("remote_cache.vectors", "bag_landing.cached"),
    Link("bag_landing.o", "hold_buffer.remote"),
    # Owner: bags to the GPU, their vectors to the requesters.
    Link("net_parser.bags", "bag_receiver.i"),
    Link("bag_receiver.o", "bag_check.i"),
    Link("bag_check.o", "owner_places.foreign"),
    Link("owner_places.o", "bag_lists.i"),
    Link("host_parser.bag_vectors", "owner_places.vectors"),
    Link("owner_places.answers", "bag_router.i"),
    Link("bag_router.remote", "bag_vectors.i"),
    Link("vector_router.local", "local_arbiter.i.0"),
    Link("bag_router.local", "local_arbiter.i.1"),
    Link("local_arbiter.o", "hold_buffer.local"),
)
"""The streams of bags that pool at their owner, besides those to the muxes; they replace the
streams of the same sources."""

RELIABLE_BAG_LINKS = (
    Link("bag_sender.o", "lost_bags.bags"),
    Link("lost_bags.o", "bag_packager.i"),
    Link("net_parser.bag_vectors", "lost_bags.vectors"),
    Link("lost_bags.fills", "bag_landing.vectors"),
)
"""The streams of bags with a reliable link; they replace the streams of the same sources."""


TRAINING_BAG_LINKS = (
    # Requester: bags of gradients from the host, beside the bags that wait for vectors.
    Link("host_parser.bag_gradients", "bag_gradients.i"),
    Link("bag_gradients.o", "bag_arbiter.i.1"),
    Link("bag_arbiter.o", "bag_packager.i"),
    Link("bag_gradients.sent", "training_path.bags_sent"),
    Link("bag_gradients.refused", "training_path.bags_refused"),
    # Owner: bags of gradients to the GPU, in the same lists.
    Link("bag_check.o", "gradient_lists.i"),
    Link("bag_check.arrived", "training_path.bags_arrived"),
    Link("gradient_lists.bags", "owner_places.foreign"),
    Link("gradient_lists.o", "list_arbiter.i.1"),
    Link("owner_places.o", "list_arbiter.i.0"),
    Link("list_arbiter.o", "bag_lists.i"),
    Link("bag_credit_return.o", "training_path.bag_credits"),
)
"""The streams of bags with gradients, besides those to the packager of bags; they replace the
streams of the same sources."""


REPEAT_LINKS = (
    Link("query_checker.o", "bag_repeats.slots"),
    Link("query_checker.segments", "bag_repeats.segments"),
    Link("bag_repeats.o", "delivery.i"),
    Link("bag_repeats.bags", "bag_sender.segments"),
    Link("pooler.o", "repeat_store.i"),
    Link("repeat_store.o", "pooled_router.i"),
)
"""The streams of the comparison of bags; they replace the streams of the same sources."""


def links(training: bool, linked: bool = False, bags: bool = False,
          repeats: bool = False) -> tuple[Link, ...]:
    """Return the links of a NIC.

    ``linked``: with a reliable link to its peers; ``bags``: with bags that pool at their owner;
    ``repeats``: with the comparison of these bags.
    """
    own = (*LINKS, *TRAINING_LINKS) if training else LINKS
    if linked:
        own = (*_without(own, RELIABLE_LINKS), *RELIABLE_LINKS,
               *_to_mux("link_probes", "net_mux", 2 + training))
    if bags:
        at = 2 + training + linked
        own = (*_without(own, BAG_LINKS), *BAG_LINKS, *_to_mux("bag_packager", "net_mux", at),
               *_to_mux("bag_vectors", "net_mux", at + 1),
               *_to_mux("bag_lists", "host_mux", 8 + training, _to_host))
    if linked and bags:
        own = (*_without(own, RELIABLE_BAG_LINKS), *RELIABLE_BAG_LINKS)
    if training and bags:
        source = "lost_bags.o" if linked else "bag_sender.o"
        more = (*TRAINING_BAG_LINKS, Link(source, "bag_arbiter.i.0"))
        own = (*_without(own, more), *more)
    if repeats:
        own = (*_without(own, REPEAT_LINKS), *REPEAT_LINKS)
    return own


def _without(own: Iterable[Link], others: Iterable[Link]) -> Iterator[Link]:
    """Return the links whose source is not that of another."""
    replaced = {link.source for link in others}
    return (link for link in own if link.source not in replaced)


def _to_mux(block: str, mux: str, port: int, fields=None) -> tuple[Link, Link]:
    """Return the links of a packager to a mux."""
    return (Link(f"{block}.headers", f"{mux}.headers.{port}", fields),
            Link(f"{block}.payload", f"{mux}.payload.{port}"))


def port_at(parts: dict[str, Any], place: str) -> Any:
    """Return the port at ``place`` of ``parts``, blocks and edges by name."""
    name, *path = place.split(".")
    found = parts[name]
    for step in path:
        found = found[int(step)] if step.isdecimal() else getattr(found, step)
    return found


def join(m: Module, link: Link, parts: dict[str, Any], held: Value | None = None) -> None:
    """Connect the two ends of ``link``; while ``held``, no item passes.

    ``TypeError`` if their payloads differ and the link has no ``fields``.
    """
    source, target = port_at(parts, link.source), port_at(parts, link.target)
    passing = 1 if held is None else ~held
    if link.fields is None:
        shapes = [end.payload.shape() for end in (source, target)]
        if shapes[0] != shapes[1]:
            raise TypeError(f"{link.source} and {link.target} must have the same payload, not "
                            f"{shapes[0]!r} and {shapes[1]!r}")
        m.d.comb += target.payload.eq(source.payload)
    else:
        m.d.comb += [target.payload[field].eq(value)
                     for field, value in link.fields(source.payload).items()]
    m.d.comb += [target.valid.eq(source.valid & passing), source.ready.eq(target.ready & passing)]


assert [name for name, _ in Key] == [name for name, _ in LookupRecord][:2] == ["row", "table"]
