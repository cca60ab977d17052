"""Link sender: keeps each packet to a peer until it is acknowledged, and sends it again till then."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import NicConfig
from rtl.formats import CREDIT_BITS, NODE_BITS, SEQUENCE_BITS, FrameInfo, RawBeat
from rtl.monitor.counters import CounterLayout
from rtl.network.layouts import AtNode
from rtl.network.link.layouts import Acknowledged, Arrivals, Failed, LinkedFrame

__all__ = ["LINK_SENDER_COUNTERS", "POOL_BEATS", "TIME_BITS", "LinkSender"]

LINK_SENDER_COUNTERS = CounterLayout(
    "packets", "links", "repeated", "timeouts", "failures", "swallowed", "stall_window",
    "stall_pool", "bad_acknowledgements")

POOL_BEATS = 4096
"""Payload beats of packets that are not acknowledged, of all peers together."""

TIME_BITS = 24
"""Bits of a time-out, in cycles; the largest is below half of their range."""


class LinkSender(wiring.Component):
    """Number the packets to each peer, keep them until they are acknowledged, and repeat them.

    It stands between the packet multiplexer and the frame assembler.

    Parameters
    ----------
    config: sizes; ``nodes`` peers, ``net_payload_beats`` of the largest packet.
    first_sequence: number of the first packet to each peer.
    beats: beats of the pool, a power of two.

    Ports
    -----
    headers, payload: new packets, streams of :data:`rtl.formats.FrameInfo`, whose ``credit`` does
        not matter, and :data:`rtl.formats.RawBeat`; none for a header with ``empty`` set.
    links: stream of :data:`rtl.network.link.layouts.Arrivals`, each of which is sent in a LINK
        packet to its ``node``.
    header_out: stream of :data:`rtl.network.link.layouts.LinkedFrame`, to the assembler.
    payload_out: stream of :data:`rtl.formats.RawBeat`, packets in the order of their headers.
    acknowledged: event :data:`rtl.network.link.layouts.Acknowledged`, in any cycle.
    arrived: stream of :data:`rtl.network.link.layouts.Arrivals`: what LINK packets say.
    ack_node, ack_value: the ``acknowledge`` that a header to ``ack_node`` carries, combinational.
    credit_node, lookup_credit, gradient_credit: the credits that a header to ``credit_node``
        carries, combinational: of partials in PARTIALS and STEPS, else of lookups.
    told: event :data:`rtl.network.layouts.AtNode`: a header with what ``ack_value`` was leaves for
        ``node``.
    time: cycles; may jump, while ``idle``, up to ``deadline``.
    timeout_first: cycles until a packet is sent again, before a round trip to its peer is measured.
    timeout_least, timeout_most: bounds of the cycles later; below 2^23.
    tries: how often a packet is sent before its peer is given up; 0 is as 1.
    failed: event :data:`rtl.network.link.layouts.Failed`: a peer is given up.
    deadline, waits: while ``idle`` and ``waits``, something moves when ``time`` is ``deadline``.
    counters: ``packets`` taken (of which ``swallowed`` were to a peer that was given up); ``links``
        sent; packets ``repeated``; ``timeouts``, passes through the packets of a peer; peers given
        up (``failures``); cycles in which a packet waits for a place in its peer's window or for
        beats in the pool; ``bad_acknowledgements``, of packets that were never sent.
    idle: nothing moves before ``time`` is ``deadline``.
    """

    def __init__(self, config: NicConfig, *, first_sequence: int = 0, beats: int = POOL_BEATS):
        self._nodes, self._most = config.nodes, config.net_payload_beats
        self._first_sequence, self._beats = first_sequence, beats
        super().__init__({
            "headers": In(stream.Signature(FrameInfo)), "payload": In(stream.Signature(RawBeat)),
            "links": In(stream.Signature(Arrivals)),
            "header_out": Out(stream.Signature(LinkedFrame)),
            "payload_out": Out(stream.Signature(RawBeat)),
            "acknowledged": In(Acknowledged), "arrived": In(stream.Signature(Arrivals)),
            "ack_node": Out(NODE_BITS), "ack_value": In(SEQUENCE_BITS),
            "credit_node": Out(NODE_BITS), "lookup_credit": In(CREDIT_BITS),
            "gradient_credit": In(CREDIT_BITS), "told": Out(AtNode),
            "time": In(32), "timeout_first": In(TIME_BITS), "timeout_least": In(TIME_BITS),
            "timeout_most": In(TIME_BITS), "tries": In(8),
            "failed": Out(Failed), "deadline": Out(32), "waits": Out(1),
            "counters": Out(LINK_SENDER_COUNTERS), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        return Module()
