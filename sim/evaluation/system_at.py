"""The system of a point: its steps, and its NICs."""

from host.systems import Devices
from sim.evaluation.en_system import en_system
from sim.evaluation.nic import NicPart, nic_part
from sim.evaluation.nic_updates import with_updates
from sim.evaluation.point import Point
from sim.evaluation.steps import Built, built
from sim.evaluation.store import Store
from sim.evaluation.systems import BASELINES, EN
from sim.evaluation.trace import Trace
from sim.evaluation.workloads import Workloads

__all__ = ["system_at"]


def system_at(point: Point, trace: Trace, work: Workloads, devices: Devices,
              runs: Store | None = None) -> tuple[Built, NicPart | None]:
    """Return a point's system and its NICs, None for a baseline; in training with the gradient
    path. Runs of NICs that ``runs`` holds are taken from there, others kept there."""
    if point.system == EN:
        chosen = en_system(point, trace, work, devices, runs)
        return chosen.built, chosen.nic
    nic = None
    if point.system not in BASELINES:
        nic = nic_part(point, trace, devices, runs)
        if point.workload == "training":
            nic = with_updates(point, trace, devices, work, nic)
    return built(point, work, devices, nic), nic
