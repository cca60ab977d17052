"""Shells of the Alveo U280 that the SmartNIC goes into."""

from .axi_lite_crossing import AxiLiteCrossing
from .kinds import SHELLS, Shell
from .opennic import OpenNicPlugin, OpenNicPorts
from .register_stages import RegisterStages
from .reset_handshake import ResetHandshake
from .vitis import VitisKernel

__all__ = ["SHELLS", "AxiLiteCrossing", "OpenNicPlugin", "OpenNicPorts", "RegisterStages",
           "ResetHandshake", "Shell", "VitisKernel"]
