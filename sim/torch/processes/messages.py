"""Messages between a process of a program and its server: names, types and plain values."""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
import torch

from sim.torch.lookups.query import Query
from sim.torch.processes.merge import Counts, Seen
from sim.torch.processes.wire import Channel, MessageError
from sim.torch.values.asked import AskedUpdate

__all__ = ["TO_PROCESS", "TO_SERVER", "plain", "read", "typed", "write"]

_PLAIN = (bool, int, float, str, NoneType)


def plain(value: Any, arrays: list[np.ndarray]) -> Any:
    """Return a value as plain values for JSON; arrays are appended to ``arrays``.

    A tensor is sent as its shape.
    """
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return len(arrays) - 1
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, torch.Tensor):
        return list(value.shape)
    if isinstance(value, Mapping):
        if all(isinstance(name, str) for name in value):
            return {name: plain(each, arrays) for name, each in value.items()}
        return [[plain(name, arrays), plain(each, arrays)] for name, each in value.items()]
    if isinstance(value, list | tuple | set | deque):
        return [plain(each, arrays) for each in value]
    assert is_dataclass(value), type(value)
    return [plain(getattr(value, each.name), arrays) for each in fields(value)]


def typed(kind: Any, value: Any, arrays: Sequence[np.ndarray]) -> Any:
    """Return the value of type ``kind`` from the plain value of `plain`.

    Raises ``MessageError`` if the plain value does not have the type.
    """
    try:
        return _typed(kind, value, arrays)
    except (ValueError, TypeError, IndexError, OverflowError, RuntimeError) as error:
        raise MessageError(f"a value of a message is malformed: {error}") from None


def _typed(kind: Any, value: Any, arrays: Sequence[np.ndarray]) -> Any:
    of, inner = get_origin(kind) or kind, get_args(kind)
    if of in (Union, UnionType):
        if value is None and NoneType in inner:
            return None
        one, = (each for each in inner if each is not NoneType)
        return _typed(one, value, arrays)
    if of in _PLAIN:
        if type(value) is not of and not (of is float and type(value) is int):
            raise ValueError(f"{str(value)[:80]!r} is not of type {of.__name__}")
        return of(value)
    if of is np.ndarray:
        return arrays[_typed(int, value, arrays)]
    if of is torch.Tensor:
        return torch.empty(_typed(tuple[int, ...], value, arrays), device="meta")
    if issubclass(of, Mapping):
        return _mapping(of, inner, value, arrays)
    if not isinstance(value, list):
        raise ValueError(f"{str(value)[:80]!r} is not a list")
    if hasattr(of, "_fields") or is_dataclass(of):
        return of(*_each(_members(of), value, arrays))
    if of is tuple and inner[-1:] != (...,):
        return tuple(_each(inner, value, arrays))
    made = of if of in (tuple, set, deque) else list
    return made(_typed(inner[0], each, arrays) for each in value)


def _mapping(of: Any, inner: tuple[Any, ...], value: Any, arrays: Sequence[np.ndarray]) -> Any:
    items = value.items() if isinstance(value, dict) else value
    if not isinstance(value, dict | list):
        raise ValueError(f"{str(value)[:80]!r} is not a mapping")
    if of is Counter:
        inner = inner[0], int
    if not inner:  # plain values
        return dict(items)
    return of({_typed(inner[0], name, arrays): _typed(inner[1], each, arrays)
               for name, each in items})


def _each(kinds: Sequence[Any], values: Sequence[Any], arrays: Sequence[np.ndarray]) -> list[Any]:
    if len(kinds) != len(values):
        raise ValueError(f"{len(values)} values must be {len(kinds)}")
    return [_typed(kind, value, arrays) for kind, value in zip(kinds, values)]


@cache
def _members(kind: Any) -> list[Any]:
    """Return the types of a class's members, in order."""
    hints = get_type_hints(kind)
    names = getattr(kind, "_fields", None) or [each.name for each in fields(kind)]
    return [hints[name] for name in names]


TO_SERVER: Mapping[str, Any] = {
    "rank": tuple[int, int],
    "look up": tuple[int, list[Query], bool, int],
    "update": tuple[int, AskedUpdate, bool, int],
    "come": tuple[int],
    "waits": tuple[()],
    "counted": tuple[Counts],
    "so far": tuple[Seen],
    "seen": tuple[Seen],
    "failed": tuple[int, str, str],
}
"""Value types of each message to a server, see :class:`sim.torch.processes.client.Client`."""

TO_PROCESS: Mapping[str, Any] = {
    "answer": tuple[list[np.ndarray]],
    "so far": tuple[()],
    "failed": tuple[()],
    "over": tuple[()],
}
"""Value types of each message to a process."""


def write(channel: Channel, what: str, *said: Any) -> None:
    """Send a message. Raises the exceptions of :meth:`sim.torch.processes.wire.Channel.send`."""
    arrays: list[np.ndarray] = []
    values = plain(said, arrays)
    channel.send([what, values], arrays)


def read(channel: Channel, kinds: Mapping[str, Any]) -> tuple[str, tuple[Any, ...]]:
    """Return the name and the values of the next message of these ``kinds``.

    Raises the exceptions of :meth:`sim.torch.processes.wire.Channel.receive`.
    """
    said, arrays = channel.receive()
    if not isinstance(said, list) or len(said) != 2 or not isinstance(said[0], str) or (
            said[0] not in kinds):
        raise MessageError(f"a message must be one of {', '.join(kinds)}, not {str(said)[:80]!r}")
    return said[0], typed(kinds[said[0]], said[1], arrays)
