"""Generator of the register map as Markdown and as JSON."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict

from amaranth.lib import wiring

from gen.documents.docstrings import counters_text, members_text
from gen.documents.fields import descriptor_pieces
from gen.documents.markdown import plain, table
from rtl.config import NicConfig
from rtl.control.registers import CHANNEL_BASE, CONFIG_BASE, CONTROL_BASE, COUNTER_BASE, TABLE_BASE
from rtl.control.registers import Register as Entry

__all__ = ["registers_json", "registers_markdown"]

_SECTIONS = (
    (0, "Identity", "Identification, and the addresses of the sections. A driver compares "
                    "`register_map` with the value in its header."),
    (CONFIG_BASE, "Configuration", "Read-only constants of this configuration."),
    (CONTROL_BASE, "Control", "The NIC rejects a write outside the range (SLVERR). The register "
     "keeps its value."),
    (TABLE_BASE, "Table descriptors", "Write `table_index`, then all words, 32 bits at a time. To "
     "change a descriptor in use, write 0 to word 0 first, and its new value last."),
    (CHANNEL_BASE, "Streams", "State of each stream. `valid` without `ready` means that a beat "
     "waits."),
    (COUNTER_BASE, "Counters", "Cumulative counts; only reset clears them. With `counters_hold` 1, "
     "you read a snapshot of one cycle."),
)


def registers_markdown(name: str, registers: list[Entry],
                       blocks: Mapping[str, wiring.Component], note: str) -> str:
    """Return ``registers.md``.

    blocks: blocks by the prefix of their counters' names.
    """
    text = f"# Registers of `{name}`\n\n{note}\n\nThe registers are 32-bit words at byte addresses "
    text += ("accessed by AXI4-Lite. The NIC answers SLVERR to an access without a register, a "
             "write to a read-only register, and a read of a write-only register. Unused upper "
             "bits read 0.\n")
    bounds = [base for base, *_ in _SECTIONS[1:]] + [1 << 16]
    for (base, title, said), stop in zip(_SECTIONS, bounds):
        section = [r for r in registers if base <= r.address < stop]
        text += f"\n## {title}\n\n{said}\n\n"
        text += _counters(section, blocks) if title == "Counters" else _table(section, title)
    return text


def _table(section: list[Entry], title: str) -> str:
    if title == "Control":
        return table(("address", "name", "bits", "reset", "range", "meaning"), (
            (f"{r.address:#06x}", f"`{r.name}`", r.width, _value(r.reset),
             f"{_value(r.low)} to {_value(r.high)}", r.description) for r in section), (2, 3))
    if title == "Table descriptors":
        text = table(("address", "name", "bits", "access", "meaning"), (
            (f"{r.address:#06x}", f"`{r.name}`", r.width, r.access, r.description)
            for r in section), (2,))
        return text + "\n" + table(("field", "word", "bits", "meaning"), (
            (f"`{p.name}`", p.word, p.bits, p.meaning) for p in descriptor_pieces()), (1,))
    said = members_text(NicConfig) if title == "Configuration" else {}
    value: tuple[str, Callable] = (("value", _constant) if title != "Streams"
                                   else ("bits", lambda r: r.width))
    return table(("address", "name", value[0], "meaning"), (
        (f"{r.address:#06x}", f"`{r.name}`", value[1](r),
         plain(said.get(r.name.removeprefix("config_"), r.description))) for r in section), (2,))


def _counters(section: Iterable[Entry], blocks: Mapping[str, wiring.Component]) -> str:
    names: dict[str, list[Entry]] = {}
    for register in section:
        names.setdefault(register.name.split(".")[0], []).append(register)
    text = ""
    for block, counters in names.items():
        said = counters_text(type(blocks[block])) if block in blocks else ""
        text += f"### `{block}`\n\n" + (f"{plain(said)}\n\n" if said else "")
        text += table(("address", "name"), (
            (f"{r.address:#06x}", f"`{r.name.split('.')[1]}`") for r in counters)) + "\n"
    return text.rstrip("\n") + "\n"


def _constant(register: Entry) -> str:
    return f"{register.reset:#x}" if register.name.endswith("_base") else _value(register.reset)


def _value(value: int | None) -> str:
    return f"{value:#x}" if value is not None and value > 0xFFFF else str(value)


def registers_json(name: str, registers: list[Entry]) -> str:
    """Return ``registers.json``: all registers, and the parts of a table descriptor."""
    document = {"schema": "embernic/registers/1", "name": name,
                "registers": [asdict(register) for register in registers],
                "table_descriptor": [p._asdict() for p in descriptor_pieces()]}
    return json.dumps(document, indent=1) + "\n"
