"""Channel map: the streams between the blocks of the NIC by name, and a probe of their states."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from rtl.links import links

__all__ = ["ChannelProbe", "channel_map", "channel_state", "channel_words"]


def channel_map(training: bool, linked: bool = False, bags: bool = False,
                repeats: bool = False) -> dict[str, str]:
    """Return the streams of a NIC with their destinations. Bit k of a probe is the k-th stream."""
    return {link.name: link.taker for link in links(training, linked, bags, repeats)}


def channel_state(training: bool, linked: bool = False, bags: bool = False,
                  repeats: bool = False) -> wiring.Signature:
    """Signature of ``valid`` and ``ready`` of every channel, one bit each; a beat is transferred
    where both are 1."""
    channels = len(channel_map(training, linked, bags, repeats))
    return wiring.Signature({"valid": Out(channels), "ready": Out(channels)})


def channel_words(training: bool, linked: bool = False, bags: bool = False,
                  repeats: bool = False) -> list[tuple[str, ...]]:
    """Return the channels of each 32-bit word, bit 0 first."""
    names = tuple(channel_map(training, linked, bags, repeats))
    return [names[first:first + 32] for first in range(0, len(names), 32)]


class ChannelProbe(wiring.Component):
    """Expose ``valid`` and ``ready`` of streams.

    Parameters: ``streams``, by the names of :func:`channel_map`; ``KeyError`` if one is missing;
    ``training``, ``linked``, ``bags``, ``repeats``: options of the NIC.

    Ports
    -----
    now: :func:`channel_state`, combinational.
    kept: the same a cycle later, for registers.
    """

    def __init__(self, streams: dict, training: bool, linked: bool = False, bags: bool = False,
                 repeats: bool = False):
        self._streams = [streams[name] for name in channel_map(training, linked, bags, repeats)]
        state = channel_state(training, linked, bags, repeats)
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
