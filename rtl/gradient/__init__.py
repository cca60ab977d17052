"""Gradient path: from packets of the host to one gradient per key, exact sums, and row updates."""

from rtl.gradient.checker import GRADIENT_CHECK_COUNTERS, GradientCheck
from rtl.gradient.expander import GRADIENT_EXPANDER_COUNTERS, GradientExpander
from rtl.gradient.optimizer import RowOptimizer
from rtl.gradient.partial_buffer import PARTIAL_BUFFER_COUNTERS, PartialBuffer
from rtl.gradient.partial_layouts import PartialArrived, ReceivedPartial
from rtl.gradient.partial_receiver import PARTIAL_RECEIVER_COUNTERS, PartialReceiver
from rtl.gradient.receiver import GradientReceiver
from rtl.gradient.records import update_layout, updated_layout
from rtl.gradient.reducer import GRADIENT_REDUCER_COUNTERS, GradientReducer
from rtl.gradient.reducer_layouts import (
    Flushed,
    gradient_beat_layout,
    reduced_beat_layout,
    sum_meta_layout,
)
from rtl.gradient.rounder_bank import RounderBank
from rtl.gradient.sender import GRADIENT_SENDER_COUNTERS, GradientSender, StepEnd
from rtl.gradient.unpacker import GRADIENT_UNPACKER_COUNTERS, GradientUnpacker
from rtl.gradient.updater import ROW_UPDATER_COUNTERS, RowUpdater

__all__ = [
    "GRADIENT_CHECK_COUNTERS", "GRADIENT_EXPANDER_COUNTERS", "GRADIENT_REDUCER_COUNTERS",
    "GRADIENT_SENDER_COUNTERS", "GRADIENT_UNPACKER_COUNTERS", "PARTIAL_BUFFER_COUNTERS",
    "PARTIAL_RECEIVER_COUNTERS", "ROW_UPDATER_COUNTERS", "Flushed", "GradientCheck",
    "GradientExpander", "GradientReceiver", "GradientReducer", "GradientSender", "GradientUnpacker",
    "PartialArrived", "PartialBuffer", "PartialReceiver", "ReceivedPartial", "RounderBank",
    "RowOptimizer", "RowUpdater", "StepEnd",
    "gradient_beat_layout", "reduced_beat_layout", "sum_meta_layout", "update_layout",
    "updated_layout",
]
