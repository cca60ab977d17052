"""What passes between the blocks of the gradient path."""

from amaranth.lib import data

from rtl.config import BEAT_BITS

__all__ = ["update_layout", "updated_layout"]


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
