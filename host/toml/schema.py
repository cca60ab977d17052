"""Strict reader of TOML files into frozen dataclasses; every error contains its line or its key."""

import re
import tomllib
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from host.errors import InputError, shown
from host.reading import read_whole
from host.toml.units import quantity, quantity_field

__all__ = ["MOST_BYTES", "MOST_PARTS", "read_toml"]

T = TypeVar("T")

Keys = tuple[str | int, ...]
"""Keys and indices from the top level down, such as ``("tables", 2, "rows")``."""

MOST_BYTES = 1 << 20
"""Maximum bytes of a file."""

MOST_PARTS = 64
"""Maximum parts of a dotted key. tomllib uses memory quadratic in their number."""

_PART = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_-]){_PART}(?:[ \t]*\.[ \t]*{_PART}){{{MOST_PARTS},}}")

_LARGEST = 1e100
"""Limit of numbers; larger ones are meaningless and overflow later computations."""

_LONGEST_US = 1e9
"""Limit of times in microseconds; a simulated run would never see the end of a longer time."""

_SLOWEST_GB_S = 1e-6
"""Limit of rates in gigabits or gigabytes per second, for the same reason."""

_WORDS = {int: "an integer", float: "a number", str: "a string", bool: "true or false",
          tuple: "a list", dict: "a table"}


class _Problem(Exception):
    """An error in the value at ``path``: its message begins with the table, or with the value."""

    def __init__(self, path: Keys, message: str):
        subject = message.removeprefix("no such field: ")
        outer = next(path[:k] for k in range(len(path) + 1)
                     if subject.startswith(_dotted(path[k:])))
        super().__init__(f"{_dotted(outer)}: {message}" if outer else message)


def read_toml(path: str | Path, kind: type[T],
              named: Callable[[str, type], Any] | None = None,
              check: Callable[[T], object] = lambda result: None) -> T:
    """Read ``path`` into the dataclass ``kind``, whose fields are the file's keys.

    Field types may be ``int``, ``float`` (an integer will do), ``bool``, ``str``,
    ``tuple[X, ...]``, ``dict[str, X]``, another dataclass (a table), and unions of these; None in
    a union marks an optional field. A field without a default must be in the file. A field whose
    name ends in a unit, such as ``one_way_us``, may also be given without it (``one_way``), as a
    string with a unit; see :mod:`host.toml.units`.

    Parameters
    ----------
    named: called with a string and a dataclass if the file has a string instead of a table;
        returns the object of that name.
    check: called with the result; may raise the same errors as the dataclass.

    Raises
    ------
    InputError
        The file is not TOML or has more than `MOST_BYTES`, a field is unknown, missing or has a
        wrong type, or a dataclass, ``named`` or ``check`` rejects a value (``TypeError``,
        ``ValueError`` whose message begins with the field's name). Names line and column of a
        mistake in the syntax, and the key of another mistake.
    """
    path = Path(path)
    try:
        text = read_whole(path, MOST_BYTES).decode()
    except UnicodeDecodeError as error:
        line = error.object[:error.start].count(b"\n") + 1
        column = error.start - error.object.rfind(b"\n", 0, error.start)
        raise InputError(path, line, column, "not UTF-8 text") from None
    if found := _LONG_KEY.search(text):
        raise InputError(path, text.count("\n", 0, found.start()) + 1,
                         found.start() - text.rfind("\n", 0, found.start()),
                         f"a key must have at most {MOST_PARTS} parts, not more")
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line, column = map(int, found.groups()) if found else (text.count("\n") + 1, 1)
        raise InputError(path, line, column, str(error).split(" (at ")[0]) from None
    except ValueError as error:  # an integer with more digits than Python accepts
        raise InputError(path, 0, 0, str(error)) from None
    except RecursionError:
        raise InputError(path, 0, 0, "tables or lists are nested too deeply") from None
    try:
        result = _table(content, kind, (), named)
        _checked(content, kind, (), lambda: check(result))
    except _Problem as problem:
        raise InputError(path, 0, 0, str(problem)) from None
    return result


def _dotted(path: Keys) -> str:
    """Return ``path`` as in ``tables[2].rows``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}"
                   for part in path).removeprefix(".")


def _table(content: dict, kind: type, at: Keys, named: Callable | None) -> Any:
    """Make a ``kind`` from the table ``content`` at path ``at``."""
    hints = get_type_hints(kind)
    known = {field.name: field for field in fields(kind) if field.init}
    short = {quantity_field(name): name for name in known if quantity_field(name)}
    values: dict[str, Any] = {}
    for key, value in content.items():
        name = key if key in known else short.get(key)
        if name is None:
            names = (quantity_field(name) or name for name in known)
            raise _Problem((*at, key), f"no such field: {key} (fields: {', '.join(names)})")
        if name in values:
            other = next(k for k in content if k != key and name in (k, short.get(k)))
            raise _Problem((*at, key), f"{key} and {other} must not both be given")
        if key == name:
            values[name] = _convert(key, value, hints[name], (*at, key), named)
        else:
            values[name] = _quantity(name, value, hints[name], (*at, key))
    for name, field in known.items():
        if name not in values and field.default is MISSING and field.default_factory is MISSING:
            raise _Problem(at, f"field {quantity_field(name) or name} is missing")
    return _checked(content, kind, at, lambda: kind(**values))


def _checked(content: dict, kind: type, at: Keys, action: Callable[[], T]) -> T:
    """Run ``action``, which may reject a field of ``content``."""
    try:
        return action()
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        message = str(error).removeprefix("no such field: ")
        found = re.match(r"\w+(?:\.\w+|\[\d+\])*", message)
        steps = [int(part) if part.isascii() and part.isdecimal() else part
                 for part in re.findall(r"\w+", found[0])] if found else []
        raise _Problem((*at, *_keys(content, steps)), str(error)) from None


def _keys(content: Any, steps: list[str | int]) -> list[str | int]:
    """Return the path in ``content`` to the field that a message begins with."""
    if steps and isinstance(content, dict):
        # The file may name a quantity without its unit, and may nest a table around a field.
        names = (steps[0], quantity_field(str(steps[0])))
        key = next((key for key in content if key in names), None)
        if key is not None:
            return [key, *(steps[1:] if not isinstance(content[key], dict)
                           else _keys(content[key], steps[1:]))]
        for key, value in content.items():
            if isinstance(value, dict) and (inner := _keys(value, steps)):
                return [key, *inner]
    return []


def _quantity(name: str, value: object, hint: Any, at: Keys) -> Any:
    try:
        amount = quantity(name, value)
    except (TypeError, ValueError) as error:
        raise _Problem(at, str(error)) from None
    if float in (hint, *get_args(hint)):
        return _bounded(name, float(amount), value, at)  # finite, by the syntax of a quantity
    if amount.denominator != 1:
        unit = name.removeprefix(f"{quantity_field(name)}_")
        raise _Problem(at, f"{quantity_field(name)} must be a whole number of {unit}, "
                           f"not {shown(value)}")
    return int(amount)


def _bounded(name: str, value: float, given: object, at: Keys) -> float:
    """Return ``value``; raise for a time or a rate beyond its limit."""
    if name.endswith("_us") and value > _LONGEST_US:
        raise _Problem(at, f"{name} must be at most {_LONGEST_US:g}, not {shown(given)}")
    if name.endswith(("_gbit_s", "_gb_s")) and 0 < value < _SLOWEST_GB_S:
        raise _Problem(at, f"{name} must be at least {_SLOWEST_GB_S:g}, not {shown(given)}")
    return value


def _convert(name: str, value: Any, hint: Any, at: Keys, named: Callable | None) -> Any:
    kinds = get_args(hint) if get_origin(hint) in (UnionType, Union) else (hint,)
    for kind in kinds:
        origin = get_origin(kind) or kind
        if origin is tuple and isinstance(value, list):
            inner = get_args(kind)
            if inner[-1] is not ... and len(inner) != len(value):
                raise _Problem(at, f"{name} must have {len(inner)} items, not {shown(value)}")
            return tuple(_convert(f"{name}[{i}]", item, inner[0], (*at, i), named)
                         for i, item in enumerate(value))
        if origin is dict and isinstance(value, dict):
            inner = get_args(kind)[1]
            return {key: _convert(f"{name}.{key}", item, inner, (*at, key), named)
                    for key, item in value.items()}
        if is_dataclass(origin):
            if isinstance(value, dict):
                return _table(value, origin, at, named)
            if isinstance(value, str) and named is not None:
                try:
                    return named(value, origin)
                except InputError:
                    raise
                except (TypeError, ValueError) as error:
                    raise _Problem(at, f"{name}: {error}") from None
        elif origin is float and isinstance(value, int | float) and not isinstance(value, bool):
            if not abs(value) <= _LARGEST:  # also rejects NaN
                raise _Problem(at, f"{name} must be a number of at most {_LARGEST:g}, "
                                   f"not {shown(value)}")
            return _bounded(name, float(value), value, at)
        elif isinstance(value, origin) and (not isinstance(value, bool) or origin is bool):
            return value
    wanted = []
    for kind in kinds:
        if is_dataclass(kind):
            wanted += ["a table"] if named is None else ["a name", "a table"]
        elif kind is not NoneType:
            wanted.append(_WORDS.get(get_origin(kind) or kind, str(kind)))
    raise _Problem(at, f"{name} must be {' or '.join(wanted)}, not {shown(value)}")
