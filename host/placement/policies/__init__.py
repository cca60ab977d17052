"""Models of the replacement policies: which key of a set makes room for a new one."""

from host.placement.policies.lru import Lru
from host.placement.policies.policy import Policy
from host.placement.policies.registry import POLICIES, policy_of

__all__ = ["POLICIES", "Lru", "Policy", "policy_of"]
