"""Generator of the wire format page: packets, header and records of :mod:`rtl.formats`."""

import inspect
import re
from enum import IntEnum

from amaranth.lib import data

from gen.documents.docstrings import attribute_docs
from gen.documents.fields import layout_fields
from gen.documents.markdown import plain, table
from rtl import formats
from rtl.format_notes import BOUNDS, CODES, PACKETS, TASKS

__all__ = ["record_layouts", "wire_format_markdown"]

_CODES = (formats.RecordKind, formats.Status, formats.StepKind, formats.ReductionLevel,
          formats.DescriptorKind)


def record_layouts() -> list[str]:
    """Return the names of the layouts of packet payloads, in source order."""
    used = {packet.records for packet in PACKETS.values()} | {"QueryBag", "SampleRecord"}
    return [name for name, value in vars(formats).items()
            if isinstance(value, data.StructLayout) and name in used]


def wire_format_markdown(note: str) -> str:
    """Return ``wire-format.md``, the same for every configuration."""
    docs = attribute_docs(formats)
    said = (inspect.getdoc(formats) or "").split("\n\n")[1:]
    text = f"# Packets and records\n\n{note}\n\n{_prose(said)}\n## Packets\n\n"
    text += ("Packets on host ports have the same form. Their first 42 bytes and their CRC are "
             "zero, except for the address of a packet to GPU memory in bytes 0 to 7. A beat "
             "contains eight records, the first in the lowest bits. Unused records and lanes are "
             "zero. A NIC without the gradient path rejects *training* packets.\n\n")
    text += table(("opcode", "name", "from, to", "after the header beat", "training"), (
        (f"{int(code):#04x}", code.name, packet.sender, _payload(packet.records, packet.behind),
         "yes" if packet.training else "") for code, packet in PACKETS.items()))
    text += "\n## Tasks of the host\n\n" + table(("packet", "task"), (
        (", ".join(code.name for code in codes), task) for codes, task in TASKS.items()))
    text += "\n## Bounds\n\n" + table(("quantity of a host", "bound"), BOUNDS.items())
    text += "\n## Header beat\n\n"
    text += _layout("HeaderBeat", formats.HeaderBeat, "Multi-byte fields of Ethernet, IPv4 and UDP "
                    "are in network order. EmberNIC's own fields are little-endian.")
    text += "\n## Records\n\nBits of a record, the lowest first. A record has 8 bytes, a tag beat "
    text += "64 bytes.\n"
    for name in record_layouts():
        text += f"\n### {name}\n\n" + _layout(name, getattr(formats, name), plain(docs[name]))
    text += "\n## Codes\n"
    for kind in _CODES:
        text += f"\n### {kind.__name__}\n\n{plain(docs[kind.__name__])}\n\n" + _codes(kind, docs)
    return text


def _prose(paragraphs: list[str]) -> str:
    """Return the module's paragraphs as Markdown. An indented paragraph is a drawing."""
    parts = []
    for paragraph in paragraphs:
        if paragraph.startswith("    "):
            parts.append(f"```\n{inspect.cleandoc(paragraph)}\n```\n")
        else:
            parts.append(plain(re.sub(r"::$", ":", paragraph)) + "\n")
    return "\n".join(parts)


def _payload(records: str, behind: str) -> str:
    tag = records.endswith("Tag")
    first = f"one `{records}` beat" if tag else f"`{records}`s" if records else ""
    return "; ".join(part for part in (first, behind) if part)


def _layout(name: str, layout: data.StructLayout, said: str) -> str:
    return f"{said}\n\n" + table(("byte", "bits", "width", "field", "meaning"), (
        (_byte(field.offset, field.width), _bits(field.offset, field.width), field.width,
         f"`{field.name}`", field.meaning) for field in layout_fields(name, layout)), (2,))


def _byte(offset: int, width: int) -> str:
    first, last = offset // 8, (offset + width - 1) // 8
    return str(first) if first == last else f"{first} to {last}"


def _bits(offset: int, width: int) -> str:
    return str(offset) if width == 1 else f"{offset + width - 1}:{offset}"


def _codes(kind: type[IntEnum], docs: dict[str, str]) -> str:
    return table(("value", "name", "meaning"), (
        (code.value, code.name, CODES[code] if isinstance(code, formats.Status) else
         plain(docs[f"{kind.__name__}.{code.name}"])) for code in kind), (0,))
