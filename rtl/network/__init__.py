"""Network: frames in and out, packets of records and vectors, credits."""

from .crc import Crc32c
from .frame_check import FrameCheck
from .parser import FrameParser

__all__ = ["Crc32c", "FrameCheck", "FrameParser"]
