"""Network: frames in and out, packets of records and vectors, credits."""

from .assembler import FrameAssembler
from .crc import Crc32c
from .credit_return import CreditReturn
from .credits import CreditCounter, CreditGate
from .frame_check import FrameCheck
from .lookup_check import LookupCheck
from .lookup_receiver import LookupReceiver
from .packet_mux import PacketMux
from .packet_pool import PacketPool
from .packet_reader import PacketReader
from .parser import FrameParser
from .partial_packager import PartialPackager
from .record_packager import RecordPackager
from .vector_packager import VectorPackager
from .vector_router import VectorRouter

__all__ = [
    "Crc32c", "CreditCounter", "CreditGate", "CreditReturn", "FrameAssembler", "FrameCheck",
    "FrameParser", "LookupCheck", "LookupReceiver", "PacketMux", "PacketPool", "PacketReader",
    "PartialPackager", "RecordPackager", "VectorPackager", "VectorRouter",
]
