"""Sizes of a modelled NIC: those of one that runs, and beyond."""

from dataclasses import dataclass, fields
from typing import ClassVar

from rtl.config import NicConfig

__all__ = ["WideConfig"]


@dataclass(frozen=True)
class WideConfig(NicConfig):
    """A :class:`~rtl.config.NicConfig` that may be larger than hardware: up to 256 nodes, which is
    what node numbers hold, and 2^26 rows in a cache, which its hash spreads over sets.
    """

    most_nodes: ClassVar[int] = 256
    most_rows: ClassVar[int] = 1 << 26

    @classmethod
    def of(cls, config: NicConfig) -> "WideConfig":
        """Return the sizes of ``config``."""
        return cls(**{field.name: getattr(config, field.name) for field in fields(config)})
