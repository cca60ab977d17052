"""The configuration of a modelled NIC, with larger limits than hardware."""

from dataclasses import dataclass, fields
from typing import ClassVar

from rtl.config import NicConfig
from rtl.network.link.frame_pool import FramePool
from rtl.network.link.sender import POOL_BEATS

__all__ = ["WideConfig"]


@dataclass(frozen=True)
class WideConfig(NicConfig):
    """A :class:`~rtl.config.NicConfig` that may exceed hardware: up to 256 nodes, the limit of node
    numbers, and 2^26 rows in a cache, as far as its hash spreads rows over sets.

    Raises ``ValueError`` for a replacement policy that ``cache.h`` does not have, and for more
    nodes than the pool of a reliable link has beats for, besides what ``NicConfig`` raises.
    """

    most_nodes: ClassVar[int] = 256
    most_rows: ClassVar[int] = 1 << 26

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.policy != "lru":
            raise ValueError(f"policy must be lru with fidelity model, not {self.policy!r}")
        places = POOL_BEATS - FramePool.SPARE
        if self.link and self.nodes * self.net_payload_beats > places:
            raise ValueError(f"nodes must be at most {places // self.net_payload_beats} with link, "
                             f"whose pool has a largest packet's beats for each, not "
                             f"{self.nodes!r}")

    @classmethod
    def of(cls, config: NicConfig) -> "WideConfig":
        """Return a copy of ``config`` with the larger limits."""
        return cls(**{field.name: getattr(config, field.name) for field in fields(config)})
