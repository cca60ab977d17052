"""Channel map: the streams between the blocks of the NIC by name, and a probe of their states."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

__all__ = ["CHANNELS", "TRAINING_CHANNELS", "ChannelProbe", "channel_map", "channel_state",
           "channel_words"]

CHANNELS = {
    "host_rx": "host_receiver",
    "net_rx": "net_receiver",
    "host_receiver.o": "host_parser",
    "host_receiver.refused": "host_reporter",
    "net_receiver.o": "net_parser",
    "host_parser.records": "query_checker",
    "host_parser.vectors": "local_cache",
    "host_parser.dense": "dense_ring",
    "query_checker.o": "dispatcher",
    "query_checker.errors": "host_reporter",
    "dispatcher.reserve": "hold_buffer",
    "dispatcher.local": "request_fifo",
    "dispatcher.remote": "remote_cache",
    "dispatcher.dense": "dense_ring",
    "remote_cache.misses": "lookup_packager",
    "remote_cache.vectors": "hold_buffer",
    "net_parser.records": "lookup_receiver",
    "net_parser.vectors": "remote_cache",
    "lookup_receiver.o": "lookup_check",
    "lookup_check.o": "request_arbiter",
    "request_fifo.o": "request_arbiter",
    "request_arbiter.o": "dedupe",
    "dedupe.misses": "local_cache",
    "dedupe.vectors": "vector_router",
    "local_cache.misses": "request_packager",
    "local_cache.vectors": "dedupe",
    "vector_router.local": "hold_buffer",
    "vector_router.remote": "vector_packager",
    "hold_buffer.o": "pooler",
    "pooler.o": "pooled_router",
    "pooled_router.packets": "result_packager",
    "pooled_router.vectors": "concatenator",
    "dense_ring.o": "concatenator",
    "concatenator.o": "interaction",
    "interaction.o": "result_frames",
    "lookup_packager.headers": "net_mux",
    "lookup_packager.payload": "net_mux",
    "vector_packager.headers": "net_mux",
    "vector_packager.payload": "net_mux",
    "request_packager.headers": "host_mux",
    "request_packager.payload": "host_mux",
    "result_packager.headers": "host_mux",
    "result_packager.payload": "host_mux",
    "dense_ring.headers": "host_mux",
    "dense_ring.payload": "host_mux",
    "result_frames.headers": "host_mux",
    "result_frames.payload": "host_mux",
    "host_reporter.headers": "host_mux",
    "host_reporter.payload": "host_mux",
    "net_mux.header_out": "net_assembler",
    "net_mux.payload_out": "net_assembler",
    "host_mux.header_out": "host_assembler",
    "host_mux.payload_out": "host_assembler",
    "net_tx": "network",
    "host_tx": "host",
}
"""Each stream of :class:`rtl.nic.SmartNic`, ``block.port`` of its source or the name of an edge,
and the block that it goes to."""

TRAINING_CHANNELS = {
    "host_parser.gradients": "training_path",
    "host_parser.returned": "training_path",
    "host_parser.states": "training_path",
    "host_parser.written": "training_path",
    "net_parser.partials": "training_path",
    "net_parser.steps": "training_path",
    "training_path.refused": "host_reporter",
    "training_path.lookups": "local_cache",
    "local_cache.updated": "training_path",
    "training_path.write": "local_cache",
    "training_path.net_headers": "net_mux",
    "training_path.net_payload": "net_mux",
    "training_path.host_headers": "host_mux",
    "training_path.host_payload": "host_mux",
}
"""The additional streams of a NIC that trains."""


def channel_map(training: bool) -> dict[str, str]:
    """Return the streams of a NIC with their destinations. Bit k of a probe is the k-th stream."""
    return CHANNELS | TRAINING_CHANNELS if training else CHANNELS


def channel_state(training: bool) -> wiring.Signature:
    """Signature of ``valid`` and ``ready`` of every channel, one bit each: where both are 1, a beat
    is transferred."""
    channels = len(channel_map(training))
    return wiring.Signature({"valid": Out(channels), "ready": Out(channels)})


def channel_words(training: bool) -> list[tuple[str, ...]]:
    """Return the channels of each 32-bit word, bit 0 first."""
    names = tuple(channel_map(training))
    return [names[first:first + 32] for first in range(0, len(names), 32)]


class ChannelProbe(wiring.Component):
    """Expose ``valid`` and ``ready`` of streams.

    Parameters: ``streams``, by the names of :func:`channel_map`; ``KeyError`` when one is missing;
    ``training``.

    Ports
    -----
    now: :func:`channel_state`, combinational.
    kept: the same a cycle later, for registers.
    """

    def __init__(self, streams: dict, training: bool):
        self._streams = [streams[name] for name in channel_map(training)]
        state = channel_state(training)
        super().__init__({"now": Out(state), "kept": Out(state)})

    def elaborate(self, platform) -> Module:
        m = Module()
        for member in ("valid", "ready"):
            now = getattr(self.now, member)
            m.d.comb += now.eq(Cat(getattr(stream, member) for stream in self._streams))
            kept = Signal.like(now, name=f"kept_{member}", reset_less=True)
            m.d.sync += kept.eq(now)
            m.d.comb += getattr(self.kept, member).eq(kept)
        return m
