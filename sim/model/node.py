"""A modelled NIC with its host and GPU, all of it compiled."""

from host.timing.gpu import GpuProfile
from host.timing.pcie import PcieProfile
from rtl.config import NicConfig
from sim.model.engine import ModelEngine
from sim.native.host import NativeNode

__all__ = ["ModelNode"]


class ModelNode(NativeNode):
    """What :class:`sim.node.node.Node` is for a NIC that runs, to the bit, Python out of its loop.

    It answers with vectors without values, does not train, and bears no faults.

    Parameters
    ----------
    number, config, dimension, pcie, gpu, in_flight, bottom: as of a :class:`sim.node.node.Node`.
    engine: the modelled NIC.
    """

    def __init__(self, number: int, engine: ModelEngine, config: NicConfig, dimension: int,
                 pcie: PcieProfile, gpu: GpuProfile, in_flight: int, bottom: int | None = None):
        functions, nic = engine.functions
        super().__init__(number, engine, config, dimension, pcie, gpu, in_flight, bottom, functions,
                         lambda host: functions.ember_host_new(nic, host))
