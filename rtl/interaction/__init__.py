"""Interaction: hold buffer, pooling, dot interaction, and packets of pooled vectors."""

from .dot_interaction import DotInteraction
from .hold_buffer import HoldBuffer
from .pooling import Pooler
from .records import PooledBeat, ResultBeat, SlotBeat, VectorInBeat
from .results import ResultPackager

__all__ = [
    "DotInteraction", "HoldBuffer", "PooledBeat", "Pooler", "ResultBeat", "ResultPackager",
    "SlotBeat", "VectorInBeat",
]
