"""Options of a training: what is learned, how it is simulated, and what is written."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from host.data.datasets import input_files
from host.dlrm.optimizer import Optimizer
from sim.files.outputs import check_outputs
from sim.job.inputs import GENERATED
from sim.job.options import RunOptions
from sim.job.simulation import FIDELITIES

__all__ = ["Learning", "Method", "Record", "TrainOptions"]


@dataclass(frozen=True)
class Learning:
    """What is learned from the samples.

    Members
    -------
    optimizer: of the rows; the MLPs use SGD with the same learning rate.
    epochs: passes over all samples.
    """

    optimizer: Optimizer = field(default_factory=Optimizer)
    epochs: int = 1

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise ValueError(f"epochs must be at least 1, not {self.epochs!r}")


@dataclass(frozen=True)
class Method:
    """How the steps of a training are simulated.

    Members
    -------
    fidelity: ``rtl``, NICs cycle by cycle, or ``model``, the numpy reference alone.
    compare: whether the rows that each step writes are compared with those of the reference.
    """

    fidelity: str = "rtl"
    compare: bool = True

    def __post_init__(self) -> None:
        if self.fidelity not in FIDELITIES:
            raise ValueError(f"fidelity must be {' or '.join(FIDELITIES)}, "
                             f"not {self.fidelity!r}")


@dataclass(frozen=True)
class Record:
    """What is recorded while a training goes on.

    Members
    -------
    interval: mini-batches over which loss, accuracy and AUC are computed.
    checkpoint: file from which the training continues if it exists, and which it writes.
    """

    interval: int = 100
    checkpoint: str | None = None

    def __post_init__(self) -> None:
        if self.interval < 1:
            raise ValueError(f"interval must be at least 1, not {self.interval!r}")
        if self.checkpoint == "-":
            raise ValueError("checkpoint must be a file, not '-'")


@dataclass(frozen=True)
class TrainOptions:
    """Options of :func:`sim.training.train.train`.

    Members
    -------
    run: the workload, the simulation of the cluster and its outputs, see
        :class:`sim.job.options.RunOptions`; ``in_flight`` is 1, ``first_sample``,
        ``warmup`` and ``copied_rows`` are 0.
    learning: what is learned. method: how it is simulated. record: what is recorded.
    """

    run: RunOptions = field(default_factory=lambda: RunOptions.of(in_flight=1))
    learning: Learning = field(default_factory=Learning)
    method: Method = field(default_factory=Method)
    record: Record = field(default_factory=Record)

    def __post_init__(self) -> None:
        workload, outputs = self.run.workload, self.run.outputs
        for name, value in (("in_flight", 1), ("first_sample", 0), ("warmup", 0),
                            ("copied_rows", 0)):
            if getattr(workload, name) != value:
                raise ValueError(f"{name} must be {value} in training, "
                                 f"not {getattr(workload, name)!r}")
        for name in ("predictions", "picture"):
            if getattr(outputs, name) is not None:
                raise ValueError(f"{name} must be left out in training, "
                                 f"not {getattr(outputs, name)!r}")
        if workload.fault_plan.restarts:
            raise ValueError("faults restart must be left out in training, whose steps all NICs "
                             "share; reset all NICs and resume from a checkpoint")
        if self.method.fidelity == "model":
            for name, given in (("faults", workload.faults), ("waves", outputs.waves),
                                ("pcap", outputs.pcap)):
                if given is not None:
                    raise ValueError(f"{name} must go with fidelity rtl, not with model")

    @classmethod
    def of(cls, *, optimizer: str | None = None, learning_rate: float | None = None,
           epsilon: float | None = None, **given: Any) -> "TrainOptions":
        """Return options from members of the parts; those of the run as in :meth:`RunOptions.of`.

        None stands for the default.
        """
        chosen = {"name": optimizer, "learning_rate": learning_rate, "epsilon": epsilon}
        given = {"in_flight": 1} | {name: value for name, value in given.items()
                                    if value is not None}

        def part(kind: type) -> dict[str, Any]:
            return {field.name: given.pop(field.name) for field in fields(kind)
                    if field.name in given}

        rule = replace(Optimizer(), **{k: v for k, v in chosen.items() if v is not None})
        learning = Learning(**{"optimizer": rule} | part(Learning))
        method, record = Method(**part(Method)), Record(**part(Record))
        return cls(RunOptions.of(**given), learning, method, record)

    def check_files(self) -> None:
        """Raise ``ValueError`` if an output would overwrite an input or another output.

        Call this before any file is opened.
        """
        check_outputs(self.files, self.run.workload.files)

    @property
    def files(self) -> dict[str, str | None]:
        """The files that are written, by the names of their options."""
        return self.run.outputs.files | {"checkpoint": self.record.checkpoint}

    def checkpoint_identity(self, partials: str) -> Mapping[str, object]:
        """Return the settings that a training must share with the checkpoint it continues from.

        The number of nodes matters only if their partial sums are rounded.
        """
        asked = self.run.workload
        return {"mini_batch": asked.mini_batch,
                "batching": asked.window_samples and [asked.batching, asked.window_samples],
                "format": asked.format,
                "data": [asked.data] if isinstance(asked.data, str) else asked.data,
                "bytes": asked.data and [file.stat().st_size for file in input_files(asked.data)
                                         if file.is_file()],
                "samples": asked.samples or (GENERATED if asked.data is None else None),
                "gradient_partials": partials,
                "nodes": asked.nodes if partials == "rounded" else None}
