"""Provenance of a profile's constants: source and reliability of each."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

from host.errors import shown
from host.toml.units import quantity_field

__all__ = ["STATUSES", "Constant", "check_source", "constants", "scaled", "uncertain"]

T = TypeVar("T")

STATUSES = {
    "S": "read in the named source",
    "S2": "second hand: from a source that cites or describes another",
    "D": "derived from constants of the statuses S and M",
    "M": "measured on a machine by host.calibrate",
    "C": "a design choice, not a measurement",
    "U": "unverified, or derived from unverified constants",
}
"""Letters in square brackets that begin a constant's source."""

_UNCERTAIN = ("U", "S2")
_FORM = re.compile(rf"\[({'|'.join(STATUSES)})\] \S.*", re.DOTALL)
_UNSAID = "the profile does not say"


@dataclass(frozen=True)
class Constant:
    """A constant of a profile.

    Members
    -------
    name: the field, or the path of a nested field, such as ``levels[1].one_way_us``.
    value: the number.
    status: one of `STATUSES`.
    source: the source, without the status.
    """

    name: str
    value: int | float
    status: str
    source: str

    @property
    def uncertain(self) -> bool:
        """Whether a sensitivity analysis must vary it."""
        return self.status in _UNCERTAIN


def check_source(profile: Any) -> None:
    """Check a profile's ``source``: field names with or without the unit, each with a text.

    Raises ``ValueError`` whose message begins with the path of the error.
    """
    known = {field.name for field in fields(profile) if _number(getattr(profile, field.name))}
    for name, text in profile.source.items():
        if _field(profile, name) not in known:
            raise ValueError(f"source.{name} must be for one of the numbers "
                             f"{', '.join(sorted(known))}")
        if not _FORM.fullmatch(text):
            raise ValueError(f"source.{name} must begin with one of "
                             f"{', '.join(f'[{status}]' for status in STATUSES)} and name the "
                             f"source, not {shown(text)}")


def constants(profile: Any) -> tuple[Constant, ...]:
    """Return every number of a profile in the order of its fields.

    ``profile``: a dataclass whose optional ``source`` has, for each number, a text that begins with
    a status in brackets. A number without a text is unverified. Numbers of nested dataclasses, also
    in tuples, are listed at their field's position.
    """
    return tuple(_constants(profile, ""))


def uncertain(profile: Any) -> tuple[Constant, ...]:
    """Return the `constants` that are unverified or second hand."""
    return tuple(constant for constant in constants(profile) if constant.uncertain)


def scaled(profile: T, name: str, factor: float) -> T:
    """Return ``profile`` with the constant ``name`` (see `Constant`) multiplied by ``factor``.

    Integers stay integers of at least 1; a fraction (``..._fraction``) stays at most 1. Raises
    ``ValueError`` for a name that `constants` does not list.
    """
    head, _, rest = name.partition(".")
    place = re.fullmatch(r"(\w+)\[(\d+)\]", head)
    try:
        if place:
            items = list(getattr(profile, place[1]))
            items[int(place[2])] = scaled(items[int(place[2])], rest, factor)
            return replace(profile, **{place[1]: tuple(items)})  # type: ignore[type-var]
        value = getattr(profile, head)
        if rest:
            return replace(profile, **{head: scaled(value, rest, factor)})  # type: ignore
    except (AttributeError, IndexError, TypeError):
        value = None
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError(f"name must be one of {', '.join(c.name for c in constants(profile))}, "
                         f"not {name!r}")
    new = value * factor
    if isinstance(value, int):
        new = max(1, round(new))
    elif head.endswith("_fraction"):
        new = min(1.0, new)
    return replace(profile, **{head: new})  # type: ignore[type-var]


def _constants(profile: Any, before: str) -> Iterator[Constant]:
    said = {_field(profile, name): text for name, text in getattr(profile, "source", {}).items()}
    for field in fields(profile):
        value = getattr(profile, field.name)
        if _number(value):
            text = said.get(field.name, f"[U] {_UNSAID}")
            status, _, source = text[1:].partition("] ")
            yield Constant(before + field.name, value, status, " ".join(source.split()))
        elif is_dataclass(value):
            yield from _constants(value, f"{before}{field.name}.")
        elif isinstance(value, tuple):
            for index, item in enumerate(value):
                if is_dataclass(item):
                    yield from _constants(item, f"{before}{field.name}[{index}].")


def _field(profile: Any, name: str) -> str:
    """Return the field that a name in ``source`` stands for."""
    return next((field.name for field in fields(profile)
                 if name in (field.name, quantity_field(field.name))), name)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
