"""Generator of the register map as a C header."""

import re
from enum import IntEnum

from gen.documents.fields import descriptor_pieces
from rtl import formats
from rtl.config import CachePolicy
from rtl.control.registers import MAGIC, TABLE_WORDS, Register

__all__ = ["registers_header"]

_ENUMS = (formats.Opcode, formats.Status, formats.DescriptorKind, formats.RecordKind,
          formats.InteractionMode, formats.OptimizerMode, formats.StepKind, formats.ReductionLevel,
          CachePolicy)


def registers_header(name: str, registers: list[Register], note: str) -> str:
    """Return ``registers.h``, a header for C99 and C++.

    It defines ``EMBER_<NAME>`` for each address, with ``_WIDTH``, ``_MASK`` and ``_RESET``.
    Control registers also have ``_LOW`` and ``_HIGH``. Each part of a table descriptor has
    ``_WORD``, ``_SHIFT`` and ``_MASK`` (in place). The header also defines all codes.
    """
    guard = f"EMBER_{_upper(name)}_REGISTERS_H"
    lines = [f"/* Registers of the SmartNIC {name}. {note} */", f"#ifndef {guard}",
             f"#define {guard}", "",
             "/* Addresses are byte offsets in the register block. _RESET of a read-only register",
             "   is its constant value in this configuration. */"]
    for register in registers:
        macro = f"EMBER_{_upper(register.name)}"
        lines += ["", f"/* {_comment(register)} */", f"#define {macro} 0x{register.address:04x}u"]
        if "." in register.name:
            continue
        lines += [f"#define {macro}_WIDTH {register.width}u",
                  f"#define {macro}_MASK {_hex((1 << register.width) - 1)}"]
        if not register.name.startswith(("channel_valid", "channel_ready", "lookup_next")):
            lines.append(f"#define {macro}_RESET {_hex(register.reset)}")
        if register.access == "rw":
            lines += [f"#define {macro}_LOW {_hex(register.low)}",
                      f"#define {macro}_HIGH {_hex(register.high or 0)}"]
    lines += ["", "/* Fields of a table descriptor. Write its words from EMBER_TABLE_WORD0 on:",
              f"   all {TABLE_WORDS} words for each table, word 0 last. */"]
    for piece in descriptor_pieces():
        macro = f"EMBER_DESCRIPTOR_{_upper(piece.name)}"
        mask = (1 << (piece.high + 1)) - (1 << piece.low)
        lines += [f"/* {piece.meaning} */", f"#define {macro}_WORD {piece.word}u",
                  f"#define {macro}_SHIFT {piece.low}u", f"#define {macro}_MASK {_hex(mask)}"]
    for kind in _ENUMS:
        lines += ["", *_codes(kind)]
    lines += ["", f"#define EMBER_IDENTITY {_hex(MAGIC)} /* value of register EMBER_MAGIC */", "",
              f"#endif /* {guard} */", ""]
    return "\n".join(lines)


def _codes(kind: type[IntEnum]) -> list[str]:
    prefix = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).upper()
    said = (kind.__doc__ or "").split(". ")[0].split("\n")[0].rstrip(".")
    return [f"/* {re.sub(r'`+|:[a-z]+:', '', said)} */",
            *(f"#define EMBER_{prefix}_{code.name} {_hex(code.value)}" for code in kind)]


def _upper(name: str) -> str:
    return re.sub(r"\W", "_", name).upper()


def _hex(value: int) -> str:
    return f"0x{value:x}u"


def _comment(register: Register) -> str:
    bounds = f", {register.low} to {register.high}" if register.access == "rw" else ""
    return f"{register.name} ({register.access}{bounds}): {register.description}"
