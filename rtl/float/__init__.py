"""Floating-point units."""

from rtl.float.accumulator import FloatAccumulator
from rtl.float.add import FLOAT_ADDER_LATENCY, MINUS_ZERO, FloatAdder
from rtl.float.code import CODE_CONVERTER_LATENCY, CodeConverter
from rtl.float.divide import (
    COUNT_DIVIDER_LANE_LATENCY,
    COUNT_DIVIDER_LATENCY,
    CountDivider,
    CountDividerLane,
)
from rtl.float.dot import DOT_LATENCY, DOT_TREE_LATENCY, RECODED_SLICE, DotProduct, dot_tree_latency
from rtl.float.exact import EXACT, exact_sum_layout, exact_term_layout
from rtl.float.exact_accumulator import ExactAccumulator
from rtl.float.exact_table import ExactTable, exact_operation_layout
from rtl.float.exact_terms import ExactTerms
from rtl.float.half import HALF_CONVERTER_LATENCY, HalfConverter
from rtl.float.multiply import (
    FLOAT_MULTIPLIER_LATENCY,
    PLAIN_MULTIPLIER_LATENCY,
    FloatMultiplier,
    PlainMultiplier,
)
from rtl.float.quotient import FLOAT_DIVIDER_LATENCY, FloatDivider
from rtl.float.reciprocal import RECIPROCAL_LATENCY, CountReciprocal
from rtl.float.recode import RECODED, RECODER_LATENCY, Recoder
from rtl.float.sqrt import FLOAT_ROOT_LATENCY, FloatRoot

__all__ = [
    "CODE_CONVERTER_LATENCY", "COUNT_DIVIDER_LANE_LATENCY", "COUNT_DIVIDER_LATENCY", "DOT_LATENCY",
    "DOT_TREE_LATENCY", "EXACT", "FLOAT_ADDER_LATENCY", "FLOAT_DIVIDER_LATENCY",
    "FLOAT_MULTIPLIER_LATENCY", "FLOAT_ROOT_LATENCY", "HALF_CONVERTER_LATENCY", "MINUS_ZERO",
    "PLAIN_MULTIPLIER_LATENCY", "RECIPROCAL_LATENCY", "RECODED", "RECODED_SLICE", "RECODER_LATENCY",
    "CodeConverter", "CountDivider", "CountDividerLane", "CountReciprocal", "DotProduct",
    "ExactAccumulator", "ExactTable", "ExactTerms", "FloatAccumulator", "FloatAdder",
    "FloatDivider", "FloatMultiplier", "FloatRoot", "HalfConverter", "PlainMultiplier", "Recoder",
    "dot_tree_latency", "exact_operation_layout", "exact_sum_layout", "exact_term_layout",
]
