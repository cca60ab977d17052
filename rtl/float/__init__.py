"""Floating-point units."""

from .add import FLOAT_ADDER_LATENCY, FloatAdder

__all__ = ["FLOAT_ADDER_LATENCY", "FloatAdder"]
