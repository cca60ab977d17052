"""The devices of a point."""

from host.systems import Devices
from sim.evaluation.point import Point

__all__ = ["devices_of"]


def devices_of(point: Point) -> Devices:
    """Return the devices of a point's nodes, as its profiles, constants and choices say."""
    return Devices.load(point.nodes, point.software, point.gpu, point.scaled, point.kernels,
                        point.threads, point.communicators, point.grouped)
