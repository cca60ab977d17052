"""Write the Verilog of a configured SmartNIC and the JSON document that describes it."""

import dataclasses
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from amaranth.lib import wiring

from gen.files import write_whole
from gen.platform import VerilogPlatform
from gen.verilog import Verilog, to_verilog
from rtl.config import NicConfig

__all__ = ["build_nic", "describe_nic", "generate"]

SCHEMA = "embernic/gen/1"


def build_nic(config: NicConfig) -> wiring.Component:
    """Return the SmartNIC of ``config``."""
    # The whole NIC is not needed to convert a block, nor to parse settings.
    from rtl.nic import SmartNic

    return SmartNic(config)


def describe_nic(nic: wiring.Component, verilog: Verilog, config: NicConfig) -> dict[str, Any]:
    """Return what ``<name>.json`` says: configuration, ports, registers, memories, modules.

    ``nic.registers`` lists the registers, objects with ``name``, ``address``, ``access``,
    ``reset`` and ``description``.
    """
    counts = verilog.counts()
    return {
        "schema": SCHEMA,
        "name": verilog.name,
        "configuration": dataclasses.asdict(config),
        "ports": [dataclasses.asdict(port) for port in verilog.ports],
        "registers": [
            {"name": register.name, "address": register.address,
             "access": getattr(register.access, "value", register.access),
             "reset": register.reset, "description": register.description}
            for register in getattr(nic, "registers", ())],
        "memories": verilog.memories(),
        "modules": [{"name": name, "instances": counts[name]} for name in verilog.modules],
    }


def generate(config: NicConfig, output: Path, *, report: bool = False,
             build: Callable[[NicConfig], wiring.Component] = build_nic,
             progress: Callable[[str], None] = lambda _line: None) -> dict[str, Any]:
    """Write ``<name>.v`` and ``<name>.json`` (with ``report`` also ``<name>.report.json``).

    The same configuration gives the same bytes. Files are written when all of them are there, each
    whole: whoever ends this before leaves ``output`` as it was. ``build`` makes the component of a
    configuration; ``progress`` is told what is being done. Returns the description, with ``files``
    and the ``report`` added. ``OSError`` when ``output`` cannot be written, ``ValueError`` when the
    configuration has no usable name.
    """
    if not config.name.isidentifier() or not config.name.isascii():
        raise ValueError(f"name must be an identifier to name a module, not {config.name!r}")
    with _made(output):
        progress(f"elaborating {config.name}")
        nic = build(config)
        verilog = to_verilog(nic, config.name, VerilogPlatform(config.name, sources=report))
        document = describe_nic(nic, verilog, config)
        files = {f"{config.name}.v": verilog.text, f"{config.name}.json": _json(document)}
        resources = None
        if report:
            from gen.report import report_resources

            resources = report_resources(verilog, progress=progress)
            files[f"{config.name}.report.json"] = _json(resources)
        for name, text in files.items():
            write_whole(output / name, text)
    return {**document, "files": [str(output / name) for name in files], "report": resources}


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Make ``folder`` where it is missing; take away what was made if nothing came into it."""
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
