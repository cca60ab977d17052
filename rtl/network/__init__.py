"""Network blocks: frames in and out, packets of records and vectors, credits."""

from rtl.network.assembler import FrameAssembler
from rtl.network.crc import Crc32c
from rtl.network.credit_return import CreditReturn
from rtl.network.credits import CreditCounter, CreditGate
from rtl.network.frame_check import FrameCheck
from rtl.network.lookup_check import LookupCheck
from rtl.network.lookup_receiver import LookupReceiver
from rtl.network.output_queues import OutputQueues
from rtl.network.packet_mux import PacketMux
from rtl.network.packet_pool import PacketPool
from rtl.network.packet_reader import PacketReader
from rtl.network.parser import PacketParser
from rtl.network.partial_packager import PartialPackager
from rtl.network.receiver import FrameReceiver
from rtl.network.record_packager import RecordPackager
from rtl.network.reset_guards import HeadGuard, TailGuard
from rtl.network.vector_packager import VectorPackager
from rtl.network.vector_router import VectorRouter

__all__ = [
    "Crc32c", "CreditCounter", "CreditGate", "CreditReturn", "FrameAssembler", "FrameCheck",
    "FrameReceiver", "HeadGuard", "LookupCheck", "LookupReceiver", "OutputQueues", "PacketMux",
    "PacketParser", "PacketPool", "PacketReader", "PartialPackager", "RecordPackager", "TailGuard",
    "VectorPackager", "VectorRouter",
]
