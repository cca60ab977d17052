"""Types of options that come from Python, where nothing but a caller has made sure of them.

What is checked later are bounds. Without this, a float passes where an integer is meant,
``"false"`` is true, and a generator of paths is empty the second time.
"""

import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import is_dataclass
from os import PathLike, fspath
from typing import Any

import numpy as np

__all__ = ["checked_kinds"]

_KINDS: Mapping[str, str] = {name: kind for kind, names in {
    "an integer": "nodes samples first_sample mini_batch window in_flight warmup copied_rows seed "
                  "threads patience waves_node epochs interval ways most_keys requests jobs",
    "a number": "learning_rate epsilon hit_rate burst_rate burst_share",
    "True or False": "skip clock_gating compare rtl_points demo short",
    "a text": "config batching format index placement engine fidelity mlp waves_window optimizer "
              "backend setting software arrivals burst_length",
    "a path": "json predictions picture pcap waves checkpoint output points cluster faults",
    "a name or a path": "model network gpu pcie",
    "a path or a sequence of paths": "data files",
    "an integer or a sequence of integers": "seeds",
    "a sequence of integers": "sizes hyperedges",
    "a sequence of numbers": "qps",
    "a sequence of texts": "policy only figures slo system",
    "a sequence of field=value": "set",
    "a function": "progress stop tell finished",
}.items() for name in names.split()}
"""What an option is, by its name, which means the same in each command."""


def checked_kinds(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of Python's types: numbers of numpy as Python's, sequences as tuples.

    None, which stands for the default, is left out; so the dictionary may have fewer options.
    ``TypeError`` that names option, value and type for another type; ``ValueError`` for ``data``
    and ``files`` that are none, in place of which samples would be generated.
    """
    return {name: _checked(name, value) for name, value in given.items() if value is not None}


def _checked(name: str, value: Any) -> Any:
    kind = _KINDS.get(name)
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
    return found


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
    if "\0" in str(fspath(_of(value, (str, PathLike)))):
        raise TypeError
    return value


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
