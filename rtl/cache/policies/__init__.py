"""Replacement policies: which way of a set a new key takes.

Policy ``name`` of :data:`rtl.config.POLICY_CODES` is class ``Name`` of module ``name``.
"""

from importlib import import_module

from rtl.cache.policies.lru import Lru
from rtl.cache.policies.policy import Policy
from rtl.config import POLICY_CODES

__all__ = ["POLICIES", "Lru", "Policy", "policy_of"]


POLICIES = {name: getattr(import_module(f"{__name__}.{name}"), name.capitalize())
            for name in POLICY_CODES}
"""Classes by name. They are imported at once: later, a program may have modules of our names."""


def policy_of(name: str, ways: int) -> Policy:
    """Return the policy ``name`` for sets of ``ways``; ``ValueError`` lists the names."""
    if name not in POLICIES:
        raise ValueError(f"policy must be one of {', '.join(POLICIES)}, not {name!r}")
    return POLICIES[name](ways)
