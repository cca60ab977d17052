"""Types of options that come from Python, where nothing but a caller has made sure of them.

What is checked later are bounds. Without this, a float passes where an integer is meant,
``"false"`` is true, and a generator of paths is empty the second time.
"""

import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from os import PathLike, fspath
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import numpy as np

__all__ = ["AnyPath", "AnyPaths", "Named", "Settings", "checked_kinds", "kind_of"]

AnyPath = str | PathLike[str]
"""A path as a caller may give it."""

AnyPaths = AnyPath | Sequence[AnyPath]
"""Paths of an option that may be repeated."""

Named = Annotated[AnyPath, "a name or a path"]
"""A profile or a model that ships, or a TOML file of one."""

Settings = Annotated[Sequence[str], "a sequence of field=value"]
"""Changes of a NIC."""


def kind_of(hint: Any) -> str | None:
    """Return the words for what an option of the type ``hint`` may be; None for any value."""
    several, single = "", set()
    for kind in get_args(hint) if get_origin(hint) in (UnionType, Union) else (hint,):
        if get_origin(kind) is Annotated:
            return kind.__metadata__[0]
        origin = get_origin(kind) or kind
        if origin is Sequence:
            several = f"a sequence of {_MANY[kind_of(get_args(kind)[0]) or '']}"
        elif origin is not NoneType:
            single.add("profile" if is_dataclass(origin) else origin)
    words = next((words for member, words in _WORDS if member in single), None)
    return " or ".join(filter(None, (words, several))) or None


def checked_kinds(given: Mapping[str, Any], hints: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of Python's types: numbers of numpy as Python's, paths as
    text, sequences as tuples, of several paths only.

    hints: the types of the options by name.

    None, which stands for the default, is left out; so the dictionary may have fewer options.
    ``TypeError`` that names option, value and type for another type; ``ValueError`` for ``data``
    and ``files`` that are none, in place of which samples would be generated.
    """
    return {name: _checked(name, value, kind_of(hints.get(name)))
            for name, value in given.items() if value is not None}


def _checked(name: str, value: Any, kind: str | None) -> Any:
    if kind is None:
        return value
    single, _, several = kind.partition(" or a sequence of ")
    if kind.startswith("a sequence of "):
        single, several = "", kind.removeprefix("a sequence of ")
    try:
        if not several or (single and not _is_sequence(value)):
            return _ONE[single](value)
        found = tuple(map(_ONE[_EACH[several]], _sequence(value)))
    except TypeError:
        text = f"the text {value!r}" if isinstance(value, str) and several else repr(value)
        text = text if len(text) <= 100 else f"{text[:80]}..."
        raise TypeError(f"{name} must be {kind}, not {' '.join(text.split())}") from None
    if several == "paths" and not found:
        raise ValueError(f"{name} must name at least one file")
    return found[0] if several == "paths" and len(found) == 1 else found


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | PathLike)


def _sequence(value: Any) -> Iterable[Any]:
    """Return a value that has an order; ``TypeError`` for any other."""
    if not _is_sequence(value) or isinstance(value, Mapping | set | frozenset) or np.ndim(
            value if isinstance(value, np.ndarray) else ()) > 1:
        raise TypeError
    return value


def _integer(value: Any) -> int:
    if isinstance(value, bool | np.bool_):
        raise TypeError
    return operator.index(value)


def _number(value: Any) -> float:
    if isinstance(value, np.floating):
        return float(value)
    return value if isinstance(value, float) else _integer(value)


def _flag(value: Any) -> bool:
    return bool(_of(value, (bool, np.bool_)))


def _text(value: Any) -> str:
    return str(_of(value, (str,)))


def _path(value: Any) -> Any:
    path = fspath(_of(value, (str, PathLike)))
    if "\0" in str(path):
        raise TypeError
    return path


def _named(value: Any) -> Any:
    return value if is_dataclass(value) and not isinstance(value, type) else _path(value)


def _function(value: Any) -> Any:
    if not callable(value):
        raise TypeError
    return value


def _of(value: Any, kinds: Collection[type]) -> Any:
    if not isinstance(value, tuple(kinds)):
        raise TypeError
    return value


_ONE: Mapping[str, Callable[[Any], Any]] = {
    "an integer": _integer, "a number": _number, "True or False": _flag, "a text": _text,
    "a path": _path, "a name or a path": _named, "a function": _function}

_EACH = {"paths": "a path", "integers": "an integer", "numbers": "a number", "texts": "a text",
         "field=value": "a text"}

_MANY = {each: many for many, each in _EACH.items() if many != "field=value"}

_WORDS = (("profile", "a name or a path"), (PathLike, "a path"), (Callable, "a function"),
          (float, "a number"), (bool, "True or False"), (int, "an integer"), (str, "a text"))
"""What an option may be, by the first of these types that it has."""
