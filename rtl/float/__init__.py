"""Floating-point units."""

from .add import FLOAT_ADDER_LATENCY, FloatAdder
from .divide import (
    COUNT_DIVIDER_LANE_LATENCY,
    COUNT_DIVIDER_LATENCY,
    CountDivider,
    CountDividerLane,
)
from .dot import DOT_LATENCY, DOT_TREE_LATENCY, RECODED_SLICE, DotProduct, dot_tree_latency
from .exact import EXACT, exact_sum_layout, exact_term_layout
from .exact_accumulator import ExactAccumulator
from .exact_table import ExactTable, exact_operation_layout
from .exact_terms import ExactTerms
from .multiply import (
    FLOAT_MULTIPLIER_LATENCY,
    PLAIN_MULTIPLIER_LATENCY,
    FloatMultiplier,
    PlainMultiplier,
)
from .quotient import FLOAT_DIVIDER_LATENCY, FloatDivider
from .reciprocal import RECIPROCAL_LATENCY, CountReciprocal
from .recode import RECODED, RECODER_LATENCY, Recoder
from .sqrt import FLOAT_ROOT_LATENCY, FloatRoot

__all__ = [
    "COUNT_DIVIDER_LANE_LATENCY", "COUNT_DIVIDER_LATENCY", "DOT_LATENCY", "DOT_TREE_LATENCY",
    "EXACT", "FLOAT_ADDER_LATENCY", "FLOAT_DIVIDER_LATENCY", "FLOAT_MULTIPLIER_LATENCY",
    "FLOAT_ROOT_LATENCY", "PLAIN_MULTIPLIER_LATENCY", "RECIPROCAL_LATENCY", "RECODED",
    "RECODED_SLICE", "RECODER_LATENCY", "CountDivider", "CountDividerLane", "CountReciprocal",
    "DotProduct", "ExactAccumulator", "ExactTable", "ExactTerms", "FloatAdder", "FloatDivider",
    "FloatMultiplier", "FloatRoot", "PlainMultiplier", "Recoder", "dot_tree_latency",
    "exact_operation_layout", "exact_sum_layout", "exact_term_layout",
]
