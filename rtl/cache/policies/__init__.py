"""Replacement policies: which way of a set a new key takes."""

from rtl.cache.policies.lru import Lru
from rtl.cache.policies.policy import Policy
from rtl.cache.policies.registry import POLICIES, policy_of

__all__ = ["POLICIES", "Lru", "Policy", "policy_of"]
