"""Registry of the shells."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from amaranth.lib import wiring

from gen.shells.opennic import OpenNicPlugin, OpenNicPorts, require_ethernet
from gen.shells.opennic_files import opennic_files
from gen.shells.vitis import VitisKernel, adapt_to_udp
from gen.shells.vitis_files import vitis_files
from gen.verilog.convert import Verilog
from rtl.config import NicConfig

__all__ = ["SHELLS", "Shell"]


class Shell(NamedTuple):
    """A shell.

    Members
    -------
    title: name for messages.
    prepare: function that adapts a configuration to the shell or raises ``ValueError``.
    wrap: function that makes the shell's top from a NIC and options.
    files: function that returns the shell's files, texts by path, from the configuration, the top,
        its Verilog, and the timing report of the bare NIC or None.
    options: dataclass of further options, or None.
    """

    title: str
    prepare: Callable[[NicConfig], NicConfig]
    wrap: Callable[..., wiring.Component]
    files: Callable[
        [NicConfig, wiring.Component, Verilog, Mapping[str, Any] | None], dict[str, str]]
    options: type | None = None

    def choose(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the arguments of ``wrap`` after the NIC: empty, or ``options`` with ``values``.

        Raises ``ValueError`` if a name in ``values`` is not an option of this shell.
        """
        known = [] if self.options is None else [field.name for field in fields(self.options)]
        for name in values:
            if name not in known:
                raise ValueError(f"{name} is not an option of {self.title}"
                                 + (f" (options: {', '.join(known)})" if known else ""))
        return () if self.options is None else (self.options(**values),)


SHELLS = {
    "opennic": Shell("OpenNIC, box at 250 MHz", require_ethernet, OpenNicPlugin, opennic_files,
                     OpenNicPorts),
    "vitis": Shell("Vitis RTL kernel", adapt_to_udp, VitisKernel, vitis_files),
}
"""Shells by their names for ``python -m gen --shell``."""
