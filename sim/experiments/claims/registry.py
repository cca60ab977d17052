"""Registry of claims. To add a claim, write its function and add it to its module's tuple."""

from sim.experiments.claims.caches import CACHES
from sim.experiments.claims.inference import INFERENCE
from sim.experiments.claims.scaling import SCALING
from sim.experiments.claims.system import SYSTEM
from sim.experiments.claims.training import TRAINING
from sim.experiments.claims.verdict import Claim

__all__ = ["CLAIMS"]

CLAIMS: tuple[Claim, ...] = tuple(sorted(
    (*INFERENCE, *CACHES, *TRAINING, *SCALING, *SYSTEM),
    key=lambda claim: int(claim.name.removeprefix("C"))))
"""All claims, in numerical order."""
