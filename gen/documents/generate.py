"""Generator of a SmartNIC's Verilog, and of the JSON document that describes it."""

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from amaranth.lib import wiring

from gen.base.files import write_whole
from gen.netlist.fit import oversize_warnings
from gen.shells.vivado_ooc import CLOCK_NS, not_estimated, ooc_name, ooc_script
from gen.verilog.convert import Verilog, to_verilog
from gen.verilog.heading import gen_command, with_headings
from gen.verilog.module_names import check_module_name
from gen.verilog.platform import VerilogPlatform
from rtl.config import NicConfig

__all__ = ["build_nic", "describe_nic", "generate"]

SCHEMA = "embernic/gen/1"


def build_nic(config: NicConfig) -> wiring.Component:
    """Return the SmartNIC of ``config``."""
    # The import is local: conversion of a block and parsing of settings do not need the whole NIC.
    from rtl.nic import SmartNic

    return SmartNic(config)


def describe_nic(nic: wiring.Component, verilog: Verilog, config: NicConfig,
                 shell: str = "none") -> dict[str, Any]:
    """Return the content of ``<name>.json``: shell, configuration, ports, registers, memories,
    modules, and the memory masters of ``nic``, if any.

    ``nic.registers`` is a list of registers with ``name``, ``address``, ``access``, ``reset`` and
    ``description``.
    """
    counts = verilog.counts()
    masters = [master._asdict() for master in getattr(nic, "masters", ())]
    return {
        "schema": SCHEMA,
        "name": verilog.name,
        "shell": shell,
        "configuration": dataclasses.asdict(config),
        "ports": [dataclasses.asdict(port) for port in verilog.ports],
        "registers": [
            {"name": register.name, "address": register.address,
             "access": getattr(register.access, "value", register.access),
             "reset": register.reset, "description": register.description}
            for register in getattr(nic, "registers", ())],
        **({"masters": masters} if masters else {}),
        "memories": verilog.memories(),
        "modules": [{"name": name, "instances": counts[name]} for name in verilog.modules],
    }


def generate(config: NicConfig, output: Path, *, shell: str = "none",
             options: Mapping[str, Any] | None = None, report: bool = False, timing: bool = False,
             build: Callable[[NicConfig], wiring.Component] = build_nic,
             progress: Callable[[str], None] = lambda _line: None) -> dict[str, Any]:
    """Write the files of a NIC to ``output``, and return its description.

    The files are ``<name>.v``, ``<name>.json`` and ``<name>.vivado.tcl``, a script that implements
    the design alone in Vivado. With a shell, ``<name>`` is ``<configuration>_<shell>``, and the
    shell adds its own files. The same configuration gives the same bytes. Each file with comments
    begins with the version, the tools and the command (:mod:`gen.verilog.heading`). All files are
    written at the end, each atomically.

    Parameters
    ----------
    config: configuration of the NIC.
    output: folder for the files. With a shell it must be new, empty, or contain an earlier result,
        because the shell reads the whole folder.
    shell: a shell of :data:`gen.shells.SHELLS`, or ``none``.
    options: the shell's options by name: :class:`gen.shells.OpenNicPorts`.
    report: whether to write ``<name>.report.json``, for the bare NIC.
    timing: whether to write ``<name>.timing.json``, for the bare NIC, and constraints of the shell
        that follow from it.
    build: function that makes the component of a configuration.
    progress: callback for each step.

    The returned description also contains ``files``, ``report``, ``timing`` and ``warnings``.

    Raises ``OSError`` if ``output`` cannot be written, and ``ValueError`` if the configuration's
    name is unusable, the shell or an option is unknown, or ``output`` contains other files.
    """
    from gen.shells import SHELLS
    from gen.shells.timing_xdc import named_as_in

    check_module_name(config.name)
    if shell != "none" and shell not in SHELLS:
        raise ValueError(f"shell must be one of none, {', '.join(SHELLS)}, not {shell!r}")
    name = config.name if shell == "none" else f"{config.name}_{shell}"
    command = gen_command(config, shell, options, timing=timing and shell != "none")
    chosen: tuple[Any, ...] = ()
    if shell != "none":
        chosen = SHELLS[shell].choose(options or {})
        config = SHELLS[shell].prepare(config)
    elif options:
        raise ValueError(f"{next(iter(options))} requires a shell: add --shell")
    with _made(output):
        if shell != "none":
            _check_folder(output, name)
        progress(f"elaborating {name}, about 15 s")
        nic = build(config)
        timed = None
        if shell == "none":
            verilog = bare = to_verilog(nic, name, VerilogPlatform(name, sources=report or timing))
            files = {f"{name}.v": verilog.text,
                     ooc_name(name): ooc_script(name, {"clk": CLOCK_NS})}
            if timing:
                timed = _timing(bare, progress)
        else:
            top = SHELLS[shell].wrap(nic, *chosen)
            verilog = bare = to_verilog(top, name)
            if report or timing:  # for the bare NIC, block by block
                bare = to_verilog(build(config), config.name,
                                  VerilogPlatform(config.name, sources=True))
            if timing:
                timed = _timing(bare, progress)
            files = SHELLS[shell].files(
                config, top, verilog, timed and named_as_in(verilog, bare, timed))
        document = describe_nic(nic, verilog, config, shell)
        files[f"{name}.json"] = _json(document)
        resources = None
        if report:
            from gen.netlist.report import report_resources

            resources = report_resources(bare, progress=progress)
            resources["not_estimated"] = not_estimated(name)
            files[f"{name}.report.json"] = _json(resources)
        if timed is not None:
            files[f"{name}.timing.json"] = _json(timed)
        for path, text in with_headings(files, command).items():
            (output / path).parent.mkdir(exist_ok=True)
            write_whole(output / path, text)
    return {**document, "files": [str(output / path) for path in files], "report": resources,
            "timing": timed, "warnings": oversize_warnings(document["memories"], resources)}


def _timing(verilog: Verilog, progress: Callable[[str], None]) -> dict[str, Any]:
    from gen.timing.report import report_timing

    return report_timing(verilog, progress)


def _check_folder(folder: Path, name: str) -> None:
    """Raise ``ValueError`` unless ``folder`` is empty or contains an earlier result of ``name``."""
    there = sorted(path.name for path in folder.iterdir())
    if there and f"{name}.json" not in there:
        raise ValueError(f"output must be a new or empty folder, or contain an earlier {name}, not "
                         f"{folder} with {there[0]}")


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Create ``folder`` if it is missing. Remove it after an error if it is empty."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):
            for path in missing:
                path.rmdir()
        raise


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2) + "\n"
