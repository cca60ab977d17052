"""Generator of all documents of a configuration."""

from collections.abc import Sequence
from typing import Any

from gen.base.settings import configure
from gen.documents.diagram import diagram_markdown
from gen.documents.generate import build_nic
from gen.documents.header import registers_header
from gen.documents.latency import latency_markdown
from gen.documents.registers import registers_json, registers_markdown
from gen.documents.resources import resources_markdown
from gen.documents.timing import timing_markdown
from gen.documents.wire_format import wire_format_markdown
from rtl.config import preset

__all__ = ["documents", "renew_command"]


def renew_command(config: str, settings: Sequence[str] = (), output: str = "DIR") -> str:
    """Return the command that writes the documents of preset ``config``."""
    sets = "".join(f" --set {setting}" for setting in settings)
    return f"python -m gen.documents --config {config}{sets} --output {output}"


def documents(config: str, settings: Sequence[str] = (),
              report: dict[str, Any] | None = None, timing: dict[str, Any] | None = None,
              timing_training: dict[str, Any] | None = None) -> dict[str, str]:
    """Return the text of each document by file name, for preset ``config`` with ``settings``.

    ``registers.md``, ``.h`` and ``.json``, ``wire-format.md``, ``nic.md``, ``latency.md``; and
    ``resources.md`` if ``report``, from ``python -m gen --report`` of the same configuration, is
    given; ``timing.md`` and ``timing.svg`` if ``timing``, from ``--timing``, is. With
    ``timing_training``, that of the same with training, the page has its figures too. The same
    source gives the same bytes. Nothing is elaborated.

    Raises ``ValueError`` or ``TypeError`` for an invalid configuration, a report of another one, or
    ``timing_training`` without ``timing``.
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
        "nic.md": diagram_markdown(name, sizes.training, blocks, note),
    }
    sets = "".join(f" --set {setting}" for setting in settings)
    for field, given in (("report", report), ("timing", timing),
                         ("timing_training", timing_training)):
        if given is not None and (not isinstance(given, dict) or given.get("name") != name):
            raise ValueError(f"{field} must be of {name}, not "
                             f"{given.get('name') if isinstance(given, dict) else given!r}")
    if report is not None:
        files["resources.md"] = resources_markdown(
            report, f"Estimated by Yosys: `python -m gen --config {config}{sets} --report --output "
            f"DIR`, then `{command} --report DIR/{name}.report.json`. Each distinct block is "
            "synthesised once, alone; memories are counted from their sizes.")
    if timing is not None:
        from gen.documents.timing_picture import timing_picture  # matplotlib takes a second

        training = "" if timing_training is None else (
            f", `python -m gen --config {config}{sets} --set training=true --timing --output "
            "TRAINING`")
        option = "" if timing_training is None else (
            f" --timing-training TRAINING/{name}.timing.json")
        note = (f"Estimated: `python -m gen --config {config}{sets} --timing --output DIR`"
                f"{training}, then `{command} --timing DIR/{name}.timing.json{option}`.")
        try:
            files["timing.md"] = timing_markdown(timing, note, timing_training)
            files["timing.svg"] = timing_picture(timing)
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise ValueError(f"timing must be of gen --timing, not {type(timing).__name__} without "
                             f"{error}") from None
    elif timing_training is not None:
        raise ValueError("timing_training must be given beside timing")
    return files
