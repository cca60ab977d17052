"""Options of a run: workload, simulation and outputs."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from gen.base.option import Settings, option
from sim.engines.waves import WavesOptions
from sim.files.outputs import check_earlier_results
from sim.job.outputs import Outputs
from sim.job.simulation import Simulation
from sim.job.workload import Workload

__all__ = ["RunArguments", "RunOptions"]

_PARTS = {"workload": Workload, "simulation": Simulation, "outputs": Outputs}

_REPORTED = (
    "model", "nodes", "samples", "first_sample", "mini_batch", "in_flight", "warmup", "batching",
    "window", "data", "format", "placement", "copied_rows", "pool", "own_bags", "repeats", "wire",
    "columns", "blocks", "engine", "fidelity", "threads", "skip", "network", "pcie", "gpu", "mlp",
    "seed", "cluster", "waves", "waves_node", "waves_window", "faults", "patience")
"""Members of a report's ``options``, in order; the report adds the NIC. Clock gating is left out,
because it changes only the speed of a run."""


@dataclass(frozen=True, kw_only=True)
class Changes:
    """The option ``set``, the user's name for :attr:`Workload.settings`."""

    set: Settings = option(
        (), "Change a field of the NIC's configuration, or a register; may be repeated.",
        metavar="FIELD=VALUE")


@dataclass(frozen=True)
class RunOptions:
    """Options of :func:`sim.run.run.run`.

    Members
    -------
    workload: cluster, model and samples.
    simulation: engine, fidelity and threads.
    outputs: files to write.
    """

    workload: Workload = field(default_factory=Workload)
    simulation: Simulation = field(default_factory=Simulation)
    outputs: Outputs = field(default_factory=Outputs)

    def __post_init__(self) -> None:
        if self.simulation.fidelity == "model":
            if self.outputs.waves is not None:
                raise ValueError("waves must go with fidelity rtl, not with fast, which has no "
                                 "signals")
            if self.workload.fault_plan.frames:
                raise ValueError("faults of frames must go with fidelity rtl, not with fast, "
                                 "which has no frames")
            if self.workload.fault_plan.restarts:
                raise ValueError("faults restart must go with fidelity rtl, not with fast, whose "
                                 "link never gives up a peer")
            for name in ("pcap", "predictions"):
                if getattr(self.outputs, name) is not None:
                    raise ValueError(f"{name} must go with fidelity rtl, not with fast, which has "
                                     f"no values")
        _ = self.traced

    @property
    def traced(self) -> WavesOptions | None:
        """The waveforms to trace, or None."""
        outputs = self.outputs
        return WavesOptions.of(outputs.waves, outputs.waves_node, outputs.waves_window,
                               self.workload.nodes, self.simulation.engine)

    @classmethod
    def of(cls, **given: Any) -> "RunOptions":
        """Return options from `RunArguments` or members of the parts; see :meth:`Workload.of`.

        None selects the default. ``TypeError`` for an unknown name.
        """
        if "set" in given:
            given["settings"] = given.pop("set")
        parts = _by_part({name: value for name, value in given.items() if value is not None})
        return cls(Workload.of(**parts["workload"]), Simulation(**parts["simulation"]),
                   Outputs(**parts["outputs"]))

    def with_fields(self, **changes: Any) -> "RunOptions":
        """Return a copy with changed members of the three parts."""
        return replace(self, **{name: replace(getattr(self, name), **members)
                                for name, members in _by_part(changes).items()})

    def check_files(self) -> None:
        """Raise ``ValueError`` unless the files can be written without losing other data.

        Call it before any file is opened.
        """
        self.outputs.check_files(self.workload.files)
        check_earlier_results(self.outputs.json, self.workload.first_sample)

    def as_dict(self) -> dict[str, Any]:
        """Return the options of a report, as plain values."""
        values = asdict(self.workload) | asdict(self.simulation) | asdict(self.outputs)
        return {name: values[name] for name in _REPORTED}


@dataclass(frozen=True, kw_only=True)
class RunArguments(Outputs, Simulation, Changes, Workload):
    """Options of the command ``run``, and arguments of :func:`sim.api.run`."""

    settings: tuple[str, ...] = field(default=(), init=False)
    gpus: int = field(default=1, init=False)
    lookups: tuple[int, ...] | None = field(default=None, init=False)
    owner_tables: tuple[int, ...] | None = field(default=None, init=False)
    progress: Callable[[int, int | None, int], None] | None = option(
        None, "Called periodically with the samples answered, the total (None if unknown) and the "
        "cycle.")
    stop: Callable[[], str | None] | None = option(
        None, "Returns the name of a signal when the run is to end early, else None.")
    tell: Callable[[str], None] | None = option(
        None, "Called at the end with each line of information that the result does not contain, "
        "such as which cycles the waves hold.")


def _by_part(given: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Sort the given members by the part that they belong to."""
    parts: dict[str, dict[str, Any]] = {name: {} for name in _PARTS}
    for name, value in given.items():
        part = next((part for part, kind in _PARTS.items()
                     if name in (field.name for field in fields(kind))), None)
        if part is None:
            raise TypeError(f"options have no member {name!r}")
        parts[part][name] = value
    return parts
