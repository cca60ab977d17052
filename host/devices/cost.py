"""Cost of an action: its duration, and the time that it occupies each resource."""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["RESOURCES", "Cost"]

RESOURCES = ("gpu", "gpu_memory", "cpu", "driver", "cpu_memory", "pcie_in", "pcie_out", "nic",
             "link")
"""Resources of a node.

``gpu``: multiprocessors; ``cpu``: the thread that calls operators; ``driver``: the thread of the
NIC's driver; ``pcie_in`` and ``pcie_out``: directions of the GPU's link; ``link``: connection to
the network.
"""


@dataclass(frozen=True)
class Cost:
    """Duration of an action that does not share its resources.

    The sum of two costs is their sequence.

    Members
    -------
    us: microseconds from available inputs to available outputs.
    overhead_us: part of ``us`` without work: host calls, launches, and the costs of a copy or a
        message other than its bytes.
    busy: microseconds that each of `RESOURCES` is occupied, at most ``us`` each. Other actions may
        use the resource for the rest of the time.

    Raises ``ValueError`` for a negative time, for overhead or use of a resource longer than ``us``,
    or for an unknown resource.
    """

    us: float = 0.0
    overhead_us: float = 0.0
    busy: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        slack = 1e-9 * max(1.0, self.us)  # rounding error of long sums
        if not self.us >= 0:
            raise ValueError(f"us must be at least 0, not {self.us!r}")
        if not 0 <= self.overhead_us <= self.us + slack:
            raise ValueError(f"overhead_us must be between 0 and {self.us!r}, "
                             f"not {self.overhead_us!r}")
        for name, value in self.busy.items():
            if name not in RESOURCES:
                raise ValueError(f"busy must be among {', '.join(RESOURCES)}, not {name!r}")
            if not 0 <= value <= self.us + slack:
                raise ValueError(f"busy[{name!r}] must be between 0 and {self.us!r}, not {value!r}")

    @property
    def work_us(self) -> float:
        """Microseconds without overhead."""
        return self.us - self.overhead_us

    def __add__(self, other: "Cost") -> "Cost":
        names = {**self.busy, **other.busy}
        return Cost(self.us + other.us, self.overhead_us + other.overhead_us,
                    {name: self.busy.get(name, 0.0) + other.busy.get(name, 0.0)
                     for name in names})
