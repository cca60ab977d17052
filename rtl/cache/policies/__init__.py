"""Replacement policies: which way of a set a new key takes.

Policy ``name`` of :data:`rtl.config.POLICY_CODES` is class ``Name`` of module ``name``.
"""

from importlib import import_module

from rtl.cache.policies.lru import Lru
from rtl.cache.policies.policy import Policy
from rtl.config import POLICY_CODES

__all__ = ["Lru", "Policy", "policy_of"]


def policy_of(name: str, ways: int) -> Policy:
    """Return the policy ``name`` for sets of ``ways``; ``ValueError`` lists the names."""
    if name not in POLICY_CODES:
        raise ValueError(f"policy must be one of {', '.join(POLICY_CODES)}, not {name!r}")
    return getattr(import_module(f"{__name__}.{name}"), name.capitalize())(ways)
