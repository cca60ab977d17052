"""Fields of layouts, with their meanings from :mod:`rtl.format_notes`."""

from collections.abc import Iterator
from typing import NamedTuple

from amaranth.hdl import Shape
from amaranth.lib import data

from rtl.format_notes import FIELDS
from rtl.formats import TableDescriptor

__all__ = ["Field", "Piece", "descriptor_pieces", "layout_fields", "meaning"]


class Field(NamedTuple):
    """A field of a layout: name, first bit, width in bits, and meaning."""

    name: str
    offset: int
    width: int
    meaning: str


class Piece(NamedTuple):
    """The part of a field in a 32-bit word.

    It is in bits ``low`` to ``high`` of the word. Bit ``low`` is bit ``first`` of the field.
    """

    name: str
    word: int
    low: int
    high: int
    first: int
    meaning: str

    @property
    def bits(self) -> str:
        """The bits in the word, as text."""
        return str(self.low) if self.low == self.high else f"{self.high}:{self.low}"


def meaning(layout: str, field: str) -> str:
    """Return the meaning of ``field`` of ``layout``. Raises ``KeyError`` if it has no description.
    """
    full = f"{layout}.{field}"
    return FIELDS[full] if full in FIELDS else FIELDS[field]


def layout_fields(name: str, layout: data.StructLayout, base: int = 0) -> Iterator[Field]:
    """Yield the fields of ``layout``, which is called ``name``, and of its nested layouts."""
    for field_name, field in layout:
        offset = base + field.offset
        if isinstance(field.shape, data.StructLayout):
            yield from layout_fields("EmberHeader" if field_name == "ember" else str(field_name),
                                     field.shape, offset)
        else:
            yield Field(str(field_name), offset, Shape.cast(field.shape).width,
                        meaning(name, str(field_name)))


def descriptor_pieces() -> list[Piece]:
    """Return the fields of a table descriptor, by word, without reserved fields.

    A field in several words is split into ``name_0``, ``name_1`` and so on, lowest first.
    """
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
