"""Generator of all documents of a configuration."""

from collections.abc import Sequence
from typing import Any

from gen.documents.diagram import nic_diagram
from gen.documents.header import registers_header
from gen.documents.latency import latency_markdown
from gen.documents.registers import registers_json, registers_markdown
from gen.documents.resources import resources_markdown
from gen.documents.wire_format import wire_format_markdown
from gen.generate import build_nic
from gen.options import configure
from rtl.config import preset

__all__ = ["documents", "renew_command"]


def renew_command(config: str, settings: Sequence[str] = (), output: str = "DIR") -> str:
    """Return the command that writes the documents of preset ``config``."""
    sets = "".join(f" --set {setting}" for setting in settings)
    return f"python -m gen.documents --config {config}{sets} --output {output}"


def documents(config: str, settings: Sequence[str] = (),
              report: dict[str, Any] | None = None) -> dict[str, str]:
    """Return the text of each document by file name, for preset ``config`` with ``settings``.

    ``registers.md``, ``.h`` and ``.json``, ``wire-format.md``, ``nic.svg``, ``latency.md``; and
    ``resources.md`` if ``report``, from ``python -m gen --report`` of the same configuration, is
    given. The same source gives the same bytes. Nothing is elaborated.

    Raises ``ValueError`` or ``TypeError`` for an invalid configuration, or a report of another one.
    """
    sizes = configure(preset(config), settings)
    nic = build_nic(sizes)
    name, registers, blocks = sizes.name, nic.registers, nic.blocks
    command = renew_command(config, settings)
    note = f"Made from the source by `{command}`; change it there."
    files = {
        "registers.md": registers_markdown(name, registers, blocks, note),
        "registers.h": registers_header(name, registers, f"Made by {command}."),
        "registers.json": registers_json(name, registers),
        "wire-format.md": wire_format_markdown(note),
        "latency.md": latency_markdown(name, blocks, note),
        "nic.svg": nic_diagram(name, sizes.training, blocks),
    }
    if report is not None:
        if not isinstance(report, dict) or report.get("name") != name:
            raise ValueError(f"report must be of {name}, not "
                             f"{report.get('name') if isinstance(report, dict) else report!r}")
        sets = "".join(f" --set {setting}" for setting in settings)
        files["resources.md"] = resources_markdown(
            report, f"Estimated by Yosys: `python -m gen --config {config}{sets} --report --output "
            f"DIR`, then `{command} --report DIR/{name}.report.json`. Each distinct block is "
            "synthesised once, alone; memories are counted from their sizes.")
    return files
