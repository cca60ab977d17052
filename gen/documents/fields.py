"""Fields of layouts, found by reflection, with their meanings in :mod:`rtl.format_notes`."""

from collections.abc import Iterator
from typing import NamedTuple

from amaranth.hdl import Shape
from amaranth.lib import data

from rtl.format_notes import FIELDS
from rtl.formats import TableDescriptor

__all__ = ["Field", "Piece", "descriptor_pieces", "layout_fields", "meaning"]


class Field(NamedTuple):
    """A field: first bit, width and meaning."""

    name: str
    offset: int
    width: int
    meaning: str


class Piece(NamedTuple):
    """The part of a field in one 32-bit word: bits ``low`` to ``high``, whose lowest is bit
    ``first`` of the field."""

    name: str
    word: int
    low: int
    high: int
    first: int
    meaning: str

    @property
    def bits(self) -> str:
        """The bits as text."""
        return str(self.low) if self.low == self.high else f"{self.high}:{self.low}"


def meaning(layout: str, field: str) -> str:
    """Return the meaning of ``field`` of ``layout``; ``KeyError`` if it is not documented."""
    full = f"{layout}.{field}"
    return FIELDS[full] if full in FIELDS else FIELDS[field]


def layout_fields(name: str, layout: data.StructLayout, base: int = 0) -> Iterator[Field]:
    """Yield the fields of ``layout``, named ``name``; a nested layout yields its own fields."""
    for field_name, field in layout:
        offset = base + field.offset
        if isinstance(field.shape, data.StructLayout):
            yield from layout_fields("EmberHeader" if field_name == "ember" else str(field_name),
                                     field.shape, offset)
        else:
            yield Field(str(field_name), offset, Shape.cast(field.shape).width,
                        meaning(name, str(field_name)))


def descriptor_pieces() -> list[Piece]:
    """Return the fields of a table descriptor by word; a field in several words yields ``name_0``,
    ``name_1`` ..., lowest first. Reserved fields are left out."""
    pieces = []
    for field in layout_fields("TableDescriptor", TableDescriptor):
        if field.name.startswith("reserved"):
            continue
        stop = field.offset + field.width
        words = range(field.offset // 32, -(-stop // 32))
        for k, word in enumerate(words):
            low, high = max(field.offset, 32 * word), min(stop, 32 * word + 32)
            first = low - field.offset
            pieces.append(Piece(f"{field.name}_{k}" if len(words) > 1 else field.name, word,
                                low % 32, (high - 1) % 32, first,
                                field.meaning + (f", bits {high - 1 - field.offset} to {first}"
                                                 if len(words) > 1 else "")))
    return pieces
