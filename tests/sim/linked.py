"""Settings of NICs with the reliable link; all tests of inference share the build."""

__all__ = ["LINKED"]

LINKED = ("link=true", "owner_bags=64")
"""Changes of ``tiny``: the link, and places for bags even if no table pools at its owner."""
