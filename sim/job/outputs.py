"""The output files of a command."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from gen.base.option import AnyPath, option
from host.data.datasets import Paths
from sim.engines.waves import WINDOW
from sim.files.outputs import check_outputs, check_picture, check_predictions
from sim.job.arguments import members

__all__ = ["Outputs"]


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Files that a command writes; None for each that it does not write.

    ``waves``, ``waves_node`` and ``waves_window``: see :class:`sim.engines.waves.WavesOptions`.
    """

    json: AnyPath | None = option(
        None, "Write the results to this file; - is standard output.")
    predictions: AnyPath | None = option(
        None, "Write the prediction of each sample to this file (.csv).")
    picture: AnyPath | None = option(
        None, "Draw the results to this file (.png, .svg, .pdf).")
    pcap: AnyPath | None = option(
        None, "Write every frame between the nodes to this file, for Wireshark.")
    waves: AnyPath | None = option(
        None, "Write the signals of one NIC to this file (.fst, .vcd), for GTKWave or Surfer.")
    waves_node: int | None = option(None, "Node of the signals.", shown="0")
    waves_window: str | None = option(
        None, "First and last cycle of the signals.", metavar="FIRST:LAST",
        shown=f"{WINDOW:,} cycles from the first samples")

    def __post_init__(self) -> None:
        for name in ("json", "pcap"):
            if getattr(self, name) == "-":
                raise ValueError(f"{name} must be a file, not '-'")
        check_predictions(self.predictions)
        check_picture(self.picture)

    @classmethod
    def of(cls, options: Any, *inputs: str) -> "Outputs":
        """Return the files that options name, checked against the inputs of these names."""
        outputs = cls(json=options.json, picture=getattr(options, "picture", None))
        outputs.check_files(members(options, *inputs))
        return outputs

    @property
    def files(self) -> dict[str, AnyPath]:
        """The files by the names of their options."""
        named = {field.name: getattr(self, field.name) for field in fields(self)
                 if field.name not in ("waves_node", "waves_window")}
        return {name: path for name, path in named.items() if path is not None}

    def check_files(self, inputs: Mapping[str, Paths | None]) -> None:
        """Raise ``ValueError`` unless the files are writable and distinct from each other and from
        the ``inputs``, see :func:`sim.files.outputs.check_outputs`.

        Call it before any file is opened; missing folders are created.
        """
        check_outputs(self.files, inputs)
