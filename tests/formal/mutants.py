"""Blocks made otherwise: broken on purpose, or with other constants."""

import inspect
import sys
from collections.abc import Collection, Sequence
from types import ModuleType

import pytest

__all__ = ["broken", "some_slow", "variant"]


def variant(block: type, *edits: tuple[str, str], **names: object) -> type:
    """Return ``block`` as it would be with its module's source edited and ``names`` set in it.

    An edit gives a text of the source and what stands in its place. Other modules keep the block
    as it is. ``ValueError`` unless each text is there exactly once.
    """
    original = sys.modules[block.__module__]
    source = inspect.getsource(original)
    for old, new in edits:
        if source.count(old) != 1:
            raise ValueError(f"{original.__name__} must hold {old!r} once, "
                             f"not {source.count(old)} times")
        source = source.replace(old, new)
    made = ModuleType(original.__name__)
    made.__package__ = original.__package__
    exec(compile(source, f"<variant of {original.__name__}>", "exec"), vars(made))
    for name, value in names.items():
        if not hasattr(made, name):
            raise ValueError(f"{original.__name__} has no {name}")
        setattr(made, name, value)
    return getattr(made, block.__name__)


def broken(block: type, old: str, new: str) -> type:
    """Return ``block`` with one edit. A proof that holds for it as well would prove nothing."""
    return variant(block, (old, new))


def some_slow(cases: Sequence[tuple], slow: Collection[str], ids: Sequence[str]) -> list:
    """Return ``cases`` as parameters of a test, with their ``ids``; those named ``slow`` are so."""
    if len(cases) != len(ids) or not set(slow) <= set(ids):
        raise ValueError(f"ids must name {len(cases)} cases and be {slow!r} among others, "
                         f"not {ids!r}")
    return [pytest.param(*case, id=name, marks=[pytest.mark.slow] if name in slow else [])
            for case, name in zip(cases, ids)]
