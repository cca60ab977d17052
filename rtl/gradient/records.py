"""Records that the blocks of the gradient path exchange."""

from amaranth.lib import data

from rtl.config import BEAT_BITS
from rtl.formats import Key

__all__ = ["ROW_NUMBER_BITS", "RowLookup", "update_layout", "updated_layout"]

ROW_NUMBER_BITS = 16
"""Rows to update are numbered in order of arrival, modulo 2^16."""

RowLookup = data.StructLayout({"key": Key, "meta": ROW_NUMBER_BITS})
"""A row to look up, and its number."""


def update_layout(id_bits: int) -> data.StructLayout:
    """Layout of a beat of a row to update: old values and sum of gradients, 16 lanes of binary32
    each. ``last`` ends the row; ``state``, the row's optimizer state, and ``id`` are valid with it.
    """
    return data.StructLayout({
        "row": BEAT_BITS, "gradient": BEAT_BITS, "state": 32, "id": id_bits, "last": 1})


def updated_layout(id_bits: int) -> data.StructLayout:
    """Layout of a beat of an updated row: new values. Every beat has the new ``state`` and the
    ``id``; ``last`` ends the row."""
    return data.StructLayout({"row": BEAT_BITS, "state": 32, "id": id_bits, "last": 1})
