"""Stream blocks: buffers, FIFOs and arbiters for ``amaranth.lib.stream`` signatures."""

from .arbiter import Arbiter
from .fifo import StreamFIFO
from .packet_fifo import PacketFIFO, packet_layout
from .skid import SkidBuffer

__all__ = ["Arbiter", "PacketFIFO", "SkidBuffer", "StreamFIFO", "packet_layout"]
