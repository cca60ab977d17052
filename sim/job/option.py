"""Options of commands, written once: each is a field of a dataclass.

The field has the type and the default, and its :func:`option` the help and the bounds. The command
line (:mod:`sim.cli.command`), the functions of :mod:`sim.api` and TOML files
(:mod:`host.toml.schema`) read the fields. A field that is not ``kw_only`` is an argument without a
name.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from inspect import Parameter, Signature, cleandoc
from textwrap import fill, indent
from typing import Any, ParamSpec, TypeVar, get_type_hints

from host.bounds import check_value
from sim.job.kinds import checked_kinds, kind_of

__all__ = ["CALLABLE", "REQUIRED", "Given", "check_bounds", "given_options", "option", "same",
           "takes"]

CALLABLE = "a function"
"""Kind of the options that only a caller in Python can give."""

REQUIRED = Parameter.empty
"""Default of an option that must be given."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


@dataclass(frozen=True)
class Option:
    """What a field of options has besides its type and default.

    Members
    -------
    help: text of ``--help``.
    least, most: bounds of a number; None is unbounded.
    among: texts that are allowed; empty allows every text.
    old: new name of each value that has one; values are stored under their old names.
    metavar: form of the value in ``--help``.
    shown: default in ``--help``, where the field's own is None.
    none: text on the command line that stands for None.
    of_cluster: whether a ``cluster`` replaces the default.
    joined: whether the command line joins repeated values with commas, for a message about them.
    hidden: whether ``--help`` leaves the option out.
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

    named: whether it is given by name, rather than by its place.
    """

    name: str
    hint: Any
    kind: str | None
    default: Any
    option: Option
    named: bool


def option(default: Any, help: str, **more: Any) -> Any:
    """Return a dataclass field that is an option; ``more``: further members of `Option`."""
    values = {} if default is REQUIRED else {"default": default}
    return field(**values, metadata={"option": Option(help, **more)})


def same(kind: type, name: str, **changes: Any) -> Any:
    """Return a field that is an option of another dataclass.

    changes: ``default``, and members of `Option`, that differ.
    """
    other = kind.__dataclass_fields__[name]
    default = changes.pop("default", other.default)
    return field(default=default,
                 metadata={"option": replace(other.metadata["option"], **changes)})


@cache
def given_options(kind: type) -> tuple[Given, ...]:
    """Return the options of a dataclass, in order. A field with ``init=False`` is no option."""
    hints = get_type_hints(kind, include_extras=True)
    found = []
    for each in fields(kind):
        if each.init and "option" in each.metadata:
            details = each.metadata["option"]
            default = details.old.get(each.default, each.default) if details.old else each.default
            found.append(Given(
                each.name, hints[each.name], kind_of(hints[each.name]),
                default if default is not MISSING else REQUIRED, details, each.kw_only))
    return tuple(sorted(found, key=lambda each: each.named))


def check_bounds(options: Any) -> None:
    """Raise ``ValueError`` for an option of a dataclass that is out of its bounds.

    A value that has a new name may have that or the old one; the field keeps the old one.
    """
    for each in fields(options):
        if (bounds := each.metadata.get("option")) is None:
            continue
        value = getattr(options, each.name)
        for before, name in bounds.old.items():
            if value == name:
                object.__setattr__(options, each.name, value := before)
        if value not in bounds.among:
            check_value(each.name, value, least=bounds.least, most=bounds.most,
                        among=[name for value in bounds.among
                               if not (name := bounds.old.get(value, value)).startswith("--")])


def takes(kind: Callable[_P, object], build: Callable[..., Any] | None = None,
          ) -> Callable[[Callable[..., _T]], Callable[_P, _T]]:
    """Return a decorator that gives a function the options of a dataclass as its arguments.

    The function gets the options that ``build`` returns for the arguments other than None, and the
    callbacks by name. The help texts become the section ``Parameters`` of its docstring. A value
    under its old name has a line on standard error.

    kind: the dataclass. Its constructor is the signature, for type checkers too.
    build: returns the options, by default of the dataclass; raises ``TypeError`` for a name that is
        no option.
    """
    known = given_options(kind)  # type: ignore[arg-type]
    hints = {each.name: each.hint for each in known}
    callbacks = {each.name for each in known if each.kind == CALLABLE}
    shape = Signature([
        Parameter(each.name,
                  Parameter.KEYWORD_ONLY if each.named else Parameter.POSITIONAL_OR_KEYWORD,
                  default=each.default, annotation=each.hint) for each in known])

    def decorate(function: Callable[..., _T]) -> Callable[_P, _T]:
        def called(*placed: Any, **given: Any) -> _T:
            given = checked_kinds(shape.bind_partial(*placed).arguments | given, hints)
            _name_anew(known, given)
            return function((build or kind)(**{name: value for name, value in given.items()
                                               if name not in callbacks}),
                            **{name: given[name] for name in callbacks & given.keys()})

        called.__name__ = called.__qualname__ = function.__name__
        called.__module__ = function.__module__
        called.__signature__ = shape  # type: ignore[attr-defined]
        texts = (f"{each.name}\n{indent(fill(each.option.help, 92), '    ')}"
                 for each in known if not each.option.hidden)
        before, returns, after = cleandoc(function.__doc__ or "").partition("Returns\n-------")
        called.__doc__ = "\n".join((f"{before}Parameters\n----------", *texts,
                                    f"\n{returns}{after}"))
        return called  # type: ignore[return-value]

    return decorate


def _name_anew(known: tuple[Given, ...], given: Mapping[str, Any]) -> None:
    """Print a line for each value that is given under its old name."""
    for each in known:
        if (value := given.get(each.name)) is not None and value in each.option.old:
            new = each.option.old[value]
            new = new if new.startswith("--") else f"--{each.name} {new}"
            print(f"sim: --{each.name} {value} is the old name of {new}", file=sys.stderr)
