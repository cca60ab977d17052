"""A node of a modelled NIC with a compiled host and GPU. Reference: :mod:`sim.node.node`."""

from host.timing.gpu import GpuProfile
from host.timing.pcie import PcieProfile
from rtl.config import NicConfig
from sim.host_cpp.host import NativeNode
from sim.nic_cpp.engine import ModelEngine
from sim.node.delivery import Delivery

__all__ = ["ModelNode"]


class ModelNode(NativeNode):
    """A compiled node. Reference, bit for bit: :class:`sim.node.node.Node` with the same NIC.

    Its vectors have no values; it supports neither training nor faults.

    Parameters
    ----------
    number, config, dimension, pcie, gpu, in_flight, bottom, delivery: as of a
        :class:`sim.node.node.Node`.
    engine: the modelled NIC.
    """

    def __init__(self, number: int, engine: ModelEngine, config: NicConfig, dimension: int,
                 pcie: PcieProfile, gpu: GpuProfile, in_flight: int, bottom: int | None = None,
                 delivery: Delivery | None = None):
        functions, nic = engine.functions
        super().__init__(number, engine, config, dimension, pcie, gpu, in_flight, bottom, functions,
                         lambda host: functions.ember_host_new(nic, host), delivery=delivery)
