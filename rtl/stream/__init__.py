"""Stream blocks: buffers, FIFOs and arbiters for ``amaranth.lib.stream`` signatures."""

from rtl.stream.arbiter import Arbiter
from rtl.stream.credit_queue import CreditQueue
from rtl.stream.fifo import StreamFIFO
from rtl.stream.level import Level
from rtl.stream.packet_fifo import PacketFIFO, packet_layout
from rtl.stream.skid import SkidBuffer

__all__ = ["Arbiter", "CreditQueue", "Level", "PacketFIFO", "SkidBuffer", "StreamFIFO",
           "packet_layout"]
