"""Gradients: from the host's packets to one for each key, and on their way into the rows."""

from .bags import KeyGradient
from .checker import GRADIENT_CHECK_COUNTERS, GradientCheck
from .expander import GRADIENT_EXPANDER_COUNTERS, GradientExpander
from .optimizer import RowOptimizer
from .receiver import GradientReceiver
from .records import update_layout, updated_layout
from .unpacker import GRADIENT_UNPACKER_COUNTERS, GradientUnpacker

__all__ = [
    "GRADIENT_CHECK_COUNTERS", "GRADIENT_EXPANDER_COUNTERS", "GRADIENT_UNPACKER_COUNTERS",
    "GradientCheck", "GradientExpander", "GradientReceiver", "GradientUnpacker", "KeyGradient",
    "RowOptimizer", "update_layout", "updated_layout",
]
