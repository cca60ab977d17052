"""Blocks broken on purpose: a proof that holds for them as well would prove nothing."""

import inspect
import sys
from types import ModuleType

__all__ = ["broken"]


def broken(block: type, old: str, new: str) -> type:
    """Return ``block`` as it would be with ``new`` in place of ``old`` in its module's source.

    Other modules keep the block as it is. ``ValueError`` unless ``old`` is there exactly once.
    """
    original = sys.modules[block.__module__]
    source = inspect.getsource(original)
    if source.count(old) != 1:
        raise ValueError(f"{original.__name__} must hold {old!r} once, not {source.count(old)}")
    changed = ModuleType(original.__name__)
    changed.__package__ = original.__package__
    exec(compile(source.replace(old, new), f"<broken {original.__name__}>", "exec"),
         vars(changed))
    return vars(changed)[block.__name__]
