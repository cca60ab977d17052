"""Options of commands, written once: each is a field of a dataclass.

The field has the type and the default, and its :func:`option` the help and the bounds. The command
line (:mod:`sim.cli.command`), the functions of :mod:`sim.api` and TOML files
(:mod:`host.toml.schema`) read the fields.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cache
from inspect import Parameter, Signature, cleandoc
from textwrap import fill, indent
from typing import Any, ParamSpec, TypeVar, get_type_hints

from sim.job.kinds import checked_kinds, kind_of

__all__ = ["CALLABLE", "Given", "check_bounds", "given_options", "option", "takes"]

CALLABLE = "a function"
"""Kind of the options that only a caller in Python can give."""

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
    metavar: form of the value in ``--help``.
    shown: default in ``--help``, where the field's own is None.
    of_cluster: whether a ``cluster`` replaces the default.
    """

    help: str
    least: int | None = None
    most: int | None = None
    among: tuple[str, ...] = ()
    metavar: str | None = None
    shown: str | None = None
    of_cluster: bool = False


@dataclass(frozen=True)
class Given:
    """An option of a command: its name, type, kind, default and :class:`Option`."""

    name: str
    hint: Any
    kind: str | None
    default: Any
    option: Option


def option(default: Any, help: str, **more: Any) -> Any:
    """Return a dataclass field that is an option; ``more``: further members of `Option`."""
    return field(default=default, metadata={"option": Option(help, **more)})


@cache
def given_options(kind: type) -> tuple[Given, ...]:
    """Return the options of a dataclass, in order. A field with ``init=False`` is no option."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(Given(each.name, hints[each.name], kind_of(hints[each.name]), each.default,
                       each.metadata["option"])
                 for each in fields(kind) if each.init and "option" in each.metadata)


def check_bounds(options: Any) -> None:
    """Raise ``ValueError`` for an option of a dataclass that is out of its bounds."""
    for each in fields(options):
        bounds, value = each.metadata.get("option"), getattr(options, each.name)
        if bounds is None or value is None:
            continue
        if bounds.among and value not in bounds.among:
            raise ValueError(f"{each.name} must be one of {', '.join(bounds.among)}, "
                             f"not {value!r}")
        if bounds.least is not None and value < bounds.least:
            raise ValueError(f"{each.name} must be at least {bounds.least}, not {value!r}")
        if bounds.most is not None and value > bounds.most:
            raise ValueError(f"{each.name} must be at most {bounds.most}, not {value!r}")


def takes(kind: Callable[_P, object], build: Callable[..., Any],
          ) -> Callable[[Callable[..., _T]], Callable[_P, _T]]:
    """Return a decorator that gives a function the options of a dataclass as its arguments.

    The function gets the options that ``build`` returns for the arguments other than None, and the
    callbacks by name. The help texts become the section ``Parameters`` of its docstring.

    kind: the dataclass. Its constructor is the signature, for type checkers too.
    build: returns the options; raises ``TypeError`` for a name that is no option.
    """
    known = given_options(kind)  # type: ignore[arg-type]
    hints = {each.name: each.hint for each in known}
    callbacks = {each.name for each in known if each.kind == CALLABLE}

    def decorate(function: Callable[..., _T]) -> Callable[_P, _T]:
        def called(**given: Any) -> _T:
            given = checked_kinds(given, hints)
            return function(build(**{name: value for name, value in given.items()
                                     if name not in callbacks}),
                            **{name: given[name] for name in callbacks & given.keys()})

        called.__name__ = called.__qualname__ = function.__name__
        called.__module__ = function.__module__
        called.__signature__ = Signature([  # type: ignore[attr-defined]
            Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default,
                      annotation=each.hint) for each in known])
        texts = (f"{each.name}\n{indent(fill(each.option.help, 92), '    ')}" for each in known)
        before, returns, after = cleandoc(function.__doc__ or "").partition("Returns\n-------")
        called.__doc__ = "\n".join((f"{before}Parameters\n----------", *texts,
                                    f"\n{returns}{after}"))
        return called  # type: ignore[return-value]

    return decorate
