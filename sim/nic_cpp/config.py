"""The configuration of a modelled NIC, with larger limits than hardware."""

from dataclasses import dataclass, fields
from typing import ClassVar

from rtl.config import NicConfig

__all__ = ["WideConfig"]


@dataclass(frozen=True)
class WideConfig(NicConfig):
    """A :class:`~rtl.config.NicConfig` that may exceed hardware: up to 256 nodes, the limit of node
    numbers, and 2^26 rows in a cache, the range of the hash that spreads rows over sets.

    Raises ``ValueError`` for a replacement policy that ``cache.h`` does not implement, and for the
    errors of ``NicConfig``.
    """

    most_nodes: ClassVar[int] = 256
    most_rows: ClassVar[int] = 1 << 26

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.policy != "lru":
            raise ValueError(f"policy must be lru with fidelity fast, not {self.policy!r}")

    @classmethod
    def of(cls, config: NicConfig) -> "WideConfig":
        """Return a copy of ``config`` with the larger limits."""
        return cls(**{field.name: getattr(config, field.name) for field in fields(config)})
