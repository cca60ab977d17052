"""Arguments of the functions of :mod:`sim.api`: signatures, and checks of values.

Types are checked because a float would pass for an integer, ``"false"`` would be true, and a
generator of paths would be empty when it is read again.
"""

import operator
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields, is_dataclass
from inspect import Parameter, Signature, cleandoc
from os import PathLike, fspath
from textwrap import fill, indent
from typing import Any, ParamSpec, TypeVar

import numpy as np

from gen.base.option import CALLABLE, LISTS, Given, given_options
from host.bounds import check_value

__all__ = ["check_bounds", "members", "takes"]

_P = ParamSpec("_P")
_T = TypeVar("_T")


def check_bounds(options: Any) -> None:
    """Raise ``ValueError`` for an option of a dataclass that is out of its bounds.

    A renamed value is accepted by its new and its old name; the field stores the old name.
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


def members(options: Any, *names: str) -> dict[str, Any]:
    """Return members of options by name."""
    return {name: getattr(options, name) for name in names}


def takes(kind: Callable[_P, object], build: Callable[..., Any] | None = None,
          ) -> Callable[[Callable[..., _T]], Callable[_P, _T]]:
    """Return a decorator that gives a function the options of a dataclass as its arguments.

    The function receives the options that ``build`` returns for the arguments other than None, and
    the callbacks by name. The help texts become the section ``Parameters`` of its docstring. A
    value given by its old name prints a line on standard error.

    kind: the dataclass; its constructor is the signature, also for type checkers.
    build: returns the options, by default the dataclass; raises ``TypeError`` for an unknown name.
    """
    known = given_options(kind)  # type: ignore[arg-type]
    kinds = {each.name: each.kind for each in known}
    callbacks = {each.name for each in known if each.kind == CALLABLE}
    shape = Signature([
        Parameter(each.name,
                  Parameter.KEYWORD_ONLY if each.named else Parameter.POSITIONAL_OR_KEYWORD,
                  default=each.default, annotation=each.hint) for each in known])

    def decorate(function: Callable[..., _T]) -> Callable[_P, _T]:
        def called(*placed: Any, **given: Any) -> _T:
            given = _checked_kinds(shape.bind_partial(*placed).arguments | given, kinds)
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
    """Print a line for each value that is given by its old name."""
    for each in known:
        if (value := given.get(each.name)) is not None and value in each.option.old:
            new = each.option.old[value]
            new = new if new.startswith("--") else f"--{each.name} {new}"
            print(f"sim: --{each.name} {value} is the old name of {new}", file=sys.stderr)


def _checked_kinds(given: Mapping[str, Any], kinds: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the values other than None as Python's types: numbers of numpy as Python's, paths as
    text, sequences as tuples.

    kinds: kinds of the options by name.

    ``TypeError`` names option, value and type. ``ValueError`` for an empty sequence of paths, in
    place of which samples would be generated.
    """
    return {name: _checked(name, value, kinds.get(name))
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
        found = tuple(map(_ONE[LISTS[several]], _sequence(value)))
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
