"""Options of commands: fields of a dataclass.

A field has the type and the default, and its :func:`option` the help and the bounds. The command
line (:mod:`gen.base.command`), the functions of :mod:`sim.api` and TOML files read the fields. A
field that is not ``kw_only`` is an argument without a name.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import cache
from inspect import Parameter
from os import PathLike
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

__all__ = ["CALLABLE", "LISTS", "REQUIRED", "AnyPath", "AnyPaths", "Given", "Named", "Settings",
           "given_options", "option", "same"]

AnyPath = str | PathLike[str]
"""A path that a caller gives."""

AnyPaths = AnyPath | Sequence[AnyPath]
"""Paths of an option that may be repeated."""

Named = Annotated[AnyPath, "a name or a path"]
"""Name of a supplied profile or model, or path of a TOML file."""

Settings = Annotated[Sequence[str], "a sequence of field=value"]
"""Changes of a NIC's configuration."""

CALLABLE = "a function"
"""Kind of the options that exist only in Python."""

REQUIRED = Parameter.empty
"""Default of a required option."""

LISTS = {"paths": "a path", "integers": "an integer", "numbers": "a number", "texts": "a text",
         "field=value": "a text"}
"""Kind of each value of a sequence, by the word for the values."""

_MANY = {each: many for many, each in LISTS.items() if many != "field=value"}

_WORDS = (("profile", "a name or a path"), (PathLike, "a path"), (Callable, "a function"),
          (float, "a number"), (bool, "True or False"), (int, "an integer"), (str, "a text"))
"""Kind of an option, by the first of these types that its type contains."""


@dataclass(frozen=True)
class Option:
    """Properties of an option besides its type and default.

    Members
    -------
    help: text of ``--help``.
    least, most: bounds of a number; None is unbounded.
    among: allowed texts; empty allows every text.
    old: new name of each renamed value; values are stored under their old names.
    metavar: form of the value in ``--help``.
    shown: default in ``--help`` if the field's default is None.
    none: text on the command line that represents None.
    of_cluster: whether a ``cluster`` replaces the default.
    joined: whether the command line joins repeated values with commas, for error messages.
    hidden: whether ``--help`` omits the option.
    """

    help: str
    least: int | None = None
    most: int | None = None
    among: tuple[str, ...] = ()
    old: Mapping[str, str] = field(default_factory=dict)
    metavar: str | None = None
    shown: str | None = None
    none: str | None = None
    of_cluster: bool = False
    joined: bool = False
    hidden: bool = False


@dataclass(frozen=True)
class Given:
    """An option of a command: its name, type, kind, default and :class:`Option`.

    named: whether it is given by name, not by position.
    """

    name: str
    hint: Any
    kind: str | None
    default: Any
    option: Option
    named: bool


def option(default: Any, help: str, **more: Any) -> Any:
    """Return a dataclass field that is an option. ``more``: further members of `Option`."""
    values = {} if default is REQUIRED else {"default": default}
    return field(**values, metadata={"option": Option(help, **more)})


def same(kind: type, name: str, **changes: Any) -> Any:
    """Return a field that copies an option of another dataclass.

    changes: ``default`` and members of `Option` that differ.
    """
    other = kind.__dataclass_fields__[name]
    default = changes.pop("default", other.default)
    return field(default=default,
                 metadata={"option": replace(other.metadata["option"], **changes)})


@cache
def given_options(kind: type) -> tuple[Given, ...]:
    """Return the options of a dataclass, in order. A field with ``init=False`` is not an option."""
    hints = get_type_hints(kind, include_extras=True)
    found = []
    for each in fields(kind):
        if each.init and "option" in each.metadata:
            details = each.metadata["option"]
            default = details.old.get(each.default, each.default) if details.old else each.default
            found.append(Given(
                each.name, hints[each.name], _kind_of(hints[each.name]),
                default if default is not MISSING else REQUIRED, details, each.kw_only))
    return tuple(sorted(found, key=lambda each: each.named))


def _kind_of(hint: Any) -> str | None:
    """Return the kind of value of an option with type ``hint``, in words; None for any value."""
    several, single = "", set()
    for kind in get_args(hint) if get_origin(hint) in (UnionType, Union) else (hint,):
        if get_origin(kind) is Annotated:
            return kind.__metadata__[0]
        origin = get_origin(kind) or kind
        if origin is Sequence:
            several = f"a sequence of {_MANY[_kind_of(get_args(kind)[0]) or '']}"
        elif origin is not NoneType:
            single.add("profile" if is_dataclass(origin) else origin)
    words = next((words for member, words in _WORDS if member in single), None)
    return " or ".join(filter(None, (words, several))) or None
