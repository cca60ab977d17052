"""Records that the blocks of the gradient path exchange."""

from amaranth.lib import data

from rtl.config import BEAT_BITS
from rtl.formats import Key

__all__ = ["ROW_NUMBER_BITS", "RowLookup", "update_layout", "updated_layout"]

ROW_NUMBER_BITS = 16
"""Rows to be updated are numbered in arrival order, modulo 2^16."""

RowLookup = data.StructLayout({"key": Key, "meta": ROW_NUMBER_BITS})
"""A row to look up, and its number."""


def update_layout(id_bits: int) -> data.StructLayout:
    """A beat of a row to be updated: the row's old values and the sum of its gradients, 16 lanes
    of binary32 each; ``state``, the optimizer's of the row, and ``id`` count with ``last``, which
    ends the row."""
    return data.StructLayout({
        "row": BEAT_BITS, "gradient": BEAT_BITS, "state": 32, "id": id_bits, "last": 1})


def updated_layout(id_bits: int) -> data.StructLayout:
    """A beat of an updated row: its new values; its new ``state`` and its ``id`` on every beat;
    ``last`` ends the row."""
    return data.StructLayout({"row": BEAT_BITS, "state": 32, "id": id_bits, "last": 1})
