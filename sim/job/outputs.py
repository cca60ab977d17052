"""The output files of a command."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from host.data.datasets import Paths
from sim.files.outputs import check_outputs, check_picture, check_predictions

__all__ = ["Outputs"]


@dataclass(frozen=True)
class Outputs:
    """Files that a command writes; None for each that it does not write.

    Members
    -------
    json: the results. predictions: the prediction of each sample (.csv). picture: the results as a
        picture (.png, .svg, .pdf). pcap: every frame between the nodes.
    waves, waves_node, waves_window: the signals of a NIC (.fst, .vcd), its node, and the cycles
        (``FIRST:LAST``), see :class:`sim.engines.waves.WavesOptions`.
    """

    json: str | None = None
    predictions: str | None = None
    picture: str | None = None
    pcap: str | None = None
    waves: str | None = None
    waves_node: int | None = None
    waves_window: str | None = None

    def __post_init__(self) -> None:
        for name in ("json", "pcap"):
            if getattr(self, name) == "-":
                raise ValueError(f"{name} must be a file, not '-'")
        check_predictions(self.predictions)
        check_picture(self.picture)

    @property
    def files(self) -> dict[str, str]:
        """The files by the names of their options."""
        named = {field.name: getattr(self, field.name) for field in fields(self)
                 if field.name not in ("waves_node", "waves_window")}
        return {name: path for name, path in named.items() if path is not None}

    def check_files(self, inputs: Mapping[str, Paths | None]) -> None:
        """Raise ``ValueError`` unless each file can be written, and none of them is another one or
        one of the ``inputs``, see :func:`sim.files.outputs.check_outputs`.

        Call it before any file is opened; missing folders are created.
        """
        check_outputs(self.files, inputs)
