"""Replacement policies by name. :data:`rtl.config.POLICY_CODES` has the same names."""

from rtl.cache.policies.lru import Lru
from rtl.cache.policies.policy import Policy

__all__ = ["POLICIES", "policy_of"]

POLICIES: dict[str, type[Policy]] = {"lru": Lru}


def policy_of(name: str, ways: int) -> Policy:
    """Return the policy called ``name`` for sets of ``ways``; ``ValueError`` lists the names."""
    if name not in POLICIES:
        raise ValueError(f"policy must be one of {', '.join(POLICIES)}, not {name!r}")
    return POLICIES[name](ways)
