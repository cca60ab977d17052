"""Interaction: hold buffer, decoder, pooling, dense ring, concatenation, dots, result packets."""

from rtl.interaction.code_reader import CodeReader
from rtl.interaction.concatenate import Concatenator
from rtl.interaction.decoder import VectorDecoder
from rtl.interaction.dense_ring import DenseRing
from rtl.interaction.dot_interaction import DotInteraction
from rtl.interaction.hold_buffer import HoldBuffer
from rtl.interaction.interaction import Interaction
from rtl.interaction.pooled_router import PooledRouter
from rtl.interaction.pooling import Pooler
from rtl.interaction.records import (
    PooledBeat,
    ResultBeat,
    SlotBeat,
    VectorInBeat,
    pooled_beat,
    slot_beat,
)
from rtl.interaction.repeat_store import RepeatStore
from rtl.interaction.result_frames import ResultFrames
from rtl.interaction.results import ResultPackager
from rtl.interaction.vector_flatten import VectorFlattener

__all__ = [
    "CodeReader", "Concatenator", "DenseRing", "DotInteraction", "HoldBuffer", "Interaction",
    "PooledBeat", "PooledRouter", "Pooler", "RepeatStore", "ResultBeat", "ResultFrames",
    "ResultPackager", "SlotBeat", "VectorDecoder", "VectorFlattener", "VectorInBeat", "pooled_beat",
    "slot_beat",
]
