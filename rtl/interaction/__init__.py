"""Interaction: hold buffer, pooling, dense ring, concatenation, dots, and packets of results."""

from .concatenate import Concatenator
from .dense_ring import DenseRing
from .dot_interaction import DotInteraction
from .hold_buffer import HoldBuffer
from .interaction import Interaction
from .pooled_router import PooledRouter
from .pooling import Pooler
from .records import PooledBeat, ResultBeat, SlotBeat, VectorInBeat
from .result_frames import ResultFrames
from .results import ResultPackager
from .vector_flatten import VectorFlattener

__all__ = [
    "Concatenator", "DenseRing", "DotInteraction", "HoldBuffer", "Interaction", "PooledBeat",
    "PooledRouter", "Pooler", "ResultBeat", "ResultFrames", "ResultPackager", "SlotBeat",
    "VectorFlattener", "VectorInBeat",
]
