"""Wrappers that put the SmartNIC into shells of the Alveo U280."""

from gen.shells.axi_lite_crossing import AxiLiteCrossing
from gen.shells.kinds import SHELLS, Shell
from gen.shells.opennic import OpenNicPlugin, OpenNicPorts
from gen.shells.register_stages import RegisterStages
from gen.shells.reset_handshake import ResetHandshake
from gen.shells.vitis import VitisKernel

__all__ = ["SHELLS", "AxiLiteCrossing", "OpenNicPlugin", "OpenNicPorts", "RegisterStages",
           "ResetHandshake", "Shell", "VitisKernel"]
