"""Timing model of PCIe between a NIC and its host: latency, and a link per direction."""

from dataclasses import dataclass, field

from host.timing.clock import Link, cycles_of_us
from host.toml.provenance import check_source

__all__ = ["Pcie", "PcieProfile"]


@dataclass(frozen=True)
class PcieProfile:
    """Constants of a PCIe connection.

    Members
    -------
    one_way_us, bandwidth_gb_s: latency and rate per direction.
    write_us: a short write of the NIC to GPU memory, such as a flag.
    read_tags: reads in flight.
    request_bytes: bytes of a read request on the link.
    completion_bytes: overhead of a completion on the link.
    source: source of each number, see :mod:`host.toml.provenance`.
    """

    name: str
    one_way_us: float
    bandwidth_gb_s: float
    write_us: float = 0.324
    read_tags: int = 256
    request_bytes: int = 24
    completion_bytes: int = 20
    source: dict[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        for name in ("one_way_us", "bandwidth_gb_s", "write_us", "read_tags", "request_bytes",
                     "completion_bytes"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, not {getattr(self, name)!r}")
        check_source(self)


class Pcie:
    """A NIC's PCIe connection.

    ``latency`` is one way, in whole cycles. A reply reaches the NIC at least ``lookahead`` cycles
    after the request left it.
    """

    def __init__(self, profile: PcieProfile):
        self.latency = int(cycles_of_us(profile.one_way_us))
        self.to_nic = Link(profile.bandwidth_gb_s)
        self.from_nic = Link(profile.bandwidth_gb_s)

    @property
    def lookahead(self) -> int:
        """Cycles of a round trip."""
        return 2 * self.latency
