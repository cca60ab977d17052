"""Timing model of copies between host and GPU memory."""

from host.devices.cost import Cost
from host.devices.software import SoftwareProfile
from host.timing.pcie import PcieProfile

__all__ = ["CopyTime"]


class CopyTime:
    """Copies over a node's PCIe link, in either direction, from or to page-locked memory.

    A copy costs the software's ``copy_us``, which includes the latency of the link, plus its bytes
    at the link's rate. Parameters: ``pcie``, ``software``.
    """

    def __init__(self, pcie: PcieProfile, software: SoftwareProfile):
        self.pcie = pcie
        self.software = software

    def copy(self, size: float, calls: int = 1) -> Cost:
        """Return the cost of ``calls`` consecutive copies of ``size`` bytes in total.

        Raises ``ValueError`` for a negative size or number of calls, and for bytes without a call.
        """
        for name, value in (("size", size), ("calls", calls)):
            if not value >= 0:
                raise ValueError(f"{name} must be at least 0, not {value!r}")
        if size and not calls:
            raise ValueError(f"calls must be at least 1 for {size!r} bytes, not {calls!r}")
        overhead = calls * self.software.copy_us
        moving = size / (self.pcie.bandwidth_gb_s * 1e3)
        return Cost(overhead + moving, overhead, {"pcie": moving, "cpu": overhead})
