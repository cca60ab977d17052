"""Interaction: hold buffer, pooling, and packets of pooled vectors."""

from .hold_buffer import HoldBuffer
from .pooling import Pooler
from .records import PooledBeat, SlotBeat
from .results import ResultPackager

__all__ = ["HoldBuffer", "PooledBeat", "Pooler", "ResultPackager", "SlotBeat"]
