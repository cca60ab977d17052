"""Rings in GPU memory: lists for it to answer, its vectors, and the completions of steps."""

from rtl.rings.completion import CompletionWriter
from rtl.rings.step_table import StepTable

__all__ = ["CompletionWriter", "StepTable"]
