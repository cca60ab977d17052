"""The shells that there are: how each wraps a NIC, and the files it wants."""

from collections.abc import Callable
from typing import NamedTuple

from amaranth.lib import wiring

from gen.shells.opennic import OpenNicPlugin, for_ethernet
from gen.shells.opennic_files import opennic_files
from gen.shells.vitis import VitisKernel, for_udp
from gen.shells.vitis_files import vitis_files
from gen.verilog import Verilog
from rtl.config import NicConfig

__all__ = ["SHELLS", "Shell"]


class Shell(NamedTuple):
    """A shell.

    Members: ``title``, for people; ``prepare``, a configuration in, out as the shell wants it, or
    ``ValueError``; ``wrap``, a NIC in, the shell's top out; ``files``, what the shell takes of
    configuration, top and its Verilog: texts by path.
    """

    title: str
    prepare: Callable[[NicConfig], NicConfig]
    wrap: Callable[[wiring.Component], wiring.Component]
    files: Callable[[NicConfig, wiring.Component, Verilog], dict[str, str]]


SHELLS = {
    "opennic": Shell("OpenNIC, box at 250 MHz", for_ethernet, OpenNicPlugin, opennic_files),
    "vitis": Shell("Vitis RTL kernel", for_udp, VitisKernel, vitis_files),
}
"""Shells by the name that ``python -m gen --shell`` knows them by."""
