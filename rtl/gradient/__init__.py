"""Gradients on their way into the rows."""

from .optimizer import RowOptimizer
from .records import update_layout, updated_layout

__all__ = ["RowOptimizer", "update_layout", "updated_layout"]
