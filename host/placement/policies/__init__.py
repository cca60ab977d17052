"""Models of the replacement policies, which select the key to evict from a set.

Policy ``name`` of :data:`rtl.config.POLICY_CODES` is class ``Name`` of module ``name``.
"""

from importlib import import_module

from host.placement.policies.lru import Lru
from host.placement.policies.policy import Policy
from rtl.config import POLICY_CODES

__all__ = ["POLICIES", "Lru", "Policy", "policy_of"]


POLICIES = {name: getattr(import_module(f"{__name__}.{name}"), name.capitalize())
            for name in POLICY_CODES}
"""Classes by name. They are imported early, because a user's program may later shadow module names.
"""


def policy_of(name: str, ways: int) -> Policy:
    """Return an empty set of ``ways`` under the policy ``name``; ``ValueError`` lists the names."""
    if name not in POLICIES:
        raise ValueError(f"policy must be one of {', '.join(POLICIES)}, not {name!r}")
    return POLICIES[name](ways)
