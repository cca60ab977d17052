"""Quantities in files: a number with a unit, such as ``"8 GiB"`` or ``"1.2 us"``."""

import re
from fractions import Fraction

from host.errors import shown

__all__ = ["quantity", "quantity_field"]

_BYTES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
          "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_TIMES = {"ns": Fraction(1, 1000), "us": 1, "ms": 10**3, "s": 10**6}
_BITS_PER_SECOND = {"Mb/s": 10**6, "Gb/s": 10**9, "Tb/s": 10**12,
                    "MB/s": 8 * 10**6, "GB/s": 8 * 10**9, "TB/s": 8 * 10**12}

_FIELDS = {  # suffix of a field's name: allowed units, value of the suffix's unit, example
    "_gbit_s": (_BITS_PER_SECOND, _BITS_PER_SECOND["Gb/s"], "100 Gb/s"),
    "_gb_s": (_BITS_PER_SECOND, _BITS_PER_SECOND["GB/s"], "12.5 GB/s"),
    "_bytes": (_BYTES, _BYTES["B"], "8 GiB"),
    "_us": (_TIMES, _TIMES["us"], "1.2 us"),
}
_FORM = re.compile(r"([-+]?[0-9]{1,30}(?:\.[0-9]{1,30})?(?:[eE][-+]?[0-9]{1,2})?) *([a-zA-Z]\S*)")


def quantity_field(field: str) -> str | None:
    """Return the name of ``field`` without its unit suffix, None if it has no unit.

    ``one_way_us`` is a plain number of microseconds; a file may give ``one_way``, a string with a
    unit, instead.
    """
    for end in _FIELDS:
        if field.endswith(end):
            return field.removesuffix(end)
    return None


def quantity(field: str, given: object) -> Fraction:
    """Convert ``given`` to the unit in the suffix of the name of ``field``.

    Raises ``TypeError`` unless it is a string with a number and a unit, and ``ValueError`` for a
    unit of another dimension; both messages list the valid units.
    """
    units, own, example = next(entry for end, entry in _FIELDS.items() if field.endswith(end))
    name, known = quantity_field(field), ", ".join(units)
    found = _FORM.fullmatch(given.strip()) if isinstance(given, str) else None
    if found is None:
        raise TypeError(f'{name} must be a string with a number and a unit, such as "{example}" '
                        f"(units: {known}), not {shown(given)}")
    number, unit = found.groups()
    if unit not in units:
        raise ValueError(f"{name} must have one of the units {known}, not {shown(unit)}")
    return Fraction(number) * units[unit] / own
