"""Interaction: hold buffer, pooling, and packets of pooled vectors."""

from .hold_buffer import HoldBuffer
from .pooling import Pooler
from .records import HoldSlot, LandedBeat, PooledBeat, SlotBeat
from .results import ResultPackager

__all__ = ["HoldBuffer", "HoldSlot", "LandedBeat", "PooledBeat", "Pooler", "ResultPackager",
           "SlotBeat"]
