"""Lookup check: accepts only lookups of rows that exist and belong to this node."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import NODE_BITS, Request, Status
from rtl.gateable import Gateable
from rtl.keys.owner_split import DESCRIPTOR_WRITES, OwnerSplit
from rtl.monitor.counters import CounterLayout, count
from rtl.network.layouts import AtNode, Freed, LookupItem
from rtl.stream import SkidBuffer

__all__ = ["LOOKUP_CHECK_COUNTERS", "LookupCheck"]

LOOKUP_CHECK_COUNTERS = CounterLayout("requests", "bad_table", "bad_row", "bad_owner")


class LookupCheck(Gateable, wiring.Component):
    """Pass lookups of rows that this node owns; drop and count all other lookups.

    An honest peer never sends an invalid lookup. A beat returns its credit after its last record,
    whatever the records contain, so the credit of a peer does not depend on its requests. A dropped
    lookup has no answer: its credit returns with the next packet to that peer. The order of lookups
    is kept.

    Parameters: ``tables``, the number of table descriptors.

    Ports
    -----
    i: stream of :data:`LookupItem`.
    o: stream of :data:`rtl.formats.Request`.
    freed: event :data:`Freed`: a beat of that requester was consumed.
    refused: event :data:`rtl.network.layouts.AtNode`: a lookup of that requester was dropped.
    node, nodes: number of this node, and the number of nodes.
    write_en, write_table, write_word, write_data, write_ready: writes to the table descriptors, see
        :class:`rtl.keys.owner_split.OwnerSplit`.
    counters: ``requests`` passed; lookups dropped for a ``bad_table``, a ``bad_row``, or a row of
        another node (``bad_owner``).
    idle: inactive until an input changes.
    """

    LATENCY = {("lookup", "request"): 6}
    RATE = "1 lookup per cycle"

    def __init__(self, tables: int):
        self._split = OwnerSplit(LookupItem, tables)
        super().__init__({
            "i": In(stream.Signature(LookupItem)), "o": Out(stream.Signature(Request)),
            "freed": Out(Freed), "refused": Out(AtNode),
            "node": In(NODE_BITS), "nodes": In(NODE_BITS),
            **DESCRIPTOR_WRITES, "write_ready": Out(1),
            "counters": Out(LOOKUP_CHECK_COUNTERS), "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.split = split = self._split
        m.submodules.buffer = buffer = SkidBuffer(Request)
        wiring.connect(m, buffer.o, wiring.flipped(self.o))
        found, request = split.o.payload, split.o.payload.user.request
        owned, take = Signal(), Signal()
        m.d.comb += [
            split.i.valid.eq(self.i.valid), self.i.ready.eq(split.i.ready),
            split.i.payload.key.eq(self.i.payload.request.key),
            split.i.payload.user.eq(self.i.payload),
            *split.follow(self),
            owned.eq(~found.refused & found.own),
            buffer.i.valid.eq(split.o.valid & owned),
            buffer.i.payload.eq(request),
            split.o.ready.eq(buffer.i.ready),
            take.eq(split.o.valid & split.o.ready),
            self.freed.valid.eq(take & found.user.beat_last),
            self.freed.node.eq(request.node), self.refused.valid.eq(take & ~owned),
            self.refused.node.eq(request.node),
            self.idle.eq(split.idle & buffer.idle),
        ]
        count(m, self.counters, requests=take & owned,
              bad_table=take & ((found.status == Status.TABLE) | (found.status == Status.KIND)),
              bad_row=take & (found.status == Status.ROW),
              bad_owner=take & ~found.refused & ~found.own)
        return m
