"""Options of a training: learning, simulation and outputs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from gen.base.option import AnyPath, option
from host.batching import REPEATS
from host.data.datasets import input_files
from host.dlrm.codecs import CODECS
from host.dlrm.formats import gradients_beside
from host.dlrm.optimizer import Optimizer
from host.systems import UPDATES
from sim.files.outputs import check_outputs
from sim.job.arguments import check_bounds
from sim.job.options import RunArguments, RunOptions
from sim.job.simulation import FIDELITIES

__all__ = ["Learning", "Method", "Record", "TrainArguments", "TrainOptions"]


@dataclass(frozen=True, kw_only=True)
class Learning:
    """Options of learning."""

    optimizer: str = option(Optimizer.name, "Optimizer of the rows: sgd or rowwise-adagrad.")
    learning_rate: float = option(
        Optimizer.learning_rate, "Learning rate of rows and MLPs; the MLPs learn by SGD.")
    epsilon: float = option(Optimizer.epsilon, "Epsilon of row-wise Adagrad.")
    epochs: int = option(1, "Passes over all samples.", least=1)
    update: str = option(
        UPDATES[0], "Place that sums the gradients of tables that pool at their owner, and updates "
        "their rows. gpu: the owner's GPU sums in float32, in the order of the mini-batch. nic: "
        "the owner's NIC sums exactly, as for all other tables.", among=UPDATES)
    gradient_wire: str | None = option(
        None, "Format of gradients between GPUs. Other formats than float32 require that all "
        "tables pool at their owner, whose GPUs update them.", among=tuple(CODECS),
        shown="bfloat16, or float32 with a wire of float32")

    def __post_init__(self) -> None:
        check_bounds(self)
        _ = self.rule

    @property
    def rule(self) -> Optimizer:
        """The optimizer of the rows."""
        return Optimizer(self.optimizer, self.learning_rate, self.epsilon)


@dataclass(frozen=True, kw_only=True)
class Method:
    """Options of the simulation of steps."""

    reference: bool = option(
        False, "Train with the numpy reference alone, without NICs.")
    fidelity: str | None = option(
        None, "Implementation that computes the steps.", among=FIDELITIES,
        old={"model": "--reference"}, hidden=True)
    compare: bool = option(
        True, "Compare the rows of every step with the numpy reference, bit for bit.")

    def __post_init__(self) -> None:
        if self.reference and self.fidelity == "rtl":
            raise ValueError("fidelity must be left out with reference, not 'rtl'")
        object.__setattr__(self, "fidelity",
                           self.fidelity or ("model" if self.reference else "rtl"))
        check_bounds(self)


@dataclass(frozen=True, kw_only=True)
class Record:
    """Options of records during a training."""

    interval: int = option(
        100, "Mini-batches per report of loss, accuracy and AUC.", least=1)
    checkpoint: AnyPath | None = option(
        None, "Resume from this file if it exists, and save the state of the training to it: at "
        "the end, when stopped, and every minute.")

    def __post_init__(self) -> None:
        check_bounds(self)
        if self.checkpoint == "-":
            raise ValueError("checkpoint must be a file, not '-'")


@dataclass(frozen=True, kw_only=True)
class TrainArguments(Record, Method, Learning, RunArguments):
    """Options of the command ``train``, and arguments of :func:`sim.api.train`."""

    in_flight: int = field(default=1, init=False)
    first_sample: int = field(default=0, init=False)
    warmup: int = field(default=0, init=False)
    copied_rows: int = field(default=0, init=False)
    own_bags: str = field(default="nic", init=False)
    predictions: AnyPath | None = field(default=None, init=False)
    picture: AnyPath | None = field(default=None, init=False)
    progress: Callable[[int, int | None, float, dict | None], None] | None = option(
        None, "Called with the steps done, the total (None if unknown), the loss of the last step "
        "and the interval that it ended or None; first with the steps of the checkpoint and loss "
        "NaN.")


@dataclass(frozen=True)
class TrainOptions:
    """Options of :func:`sim.training.train.train`.

    Members
    -------
    run: workload, simulation of the cluster and outputs, see :class:`sim.job.options.RunOptions`;
        ``in_flight`` is 1; ``first_sample``, ``warmup`` and ``copied_rows`` are 0; ``own_bags`` is
        ``nic``. With ``repeats``, GPUs add the gradients of repeated bags before they send them.
        Row-wise Adagrad has a state for each row of a column slice, as in TorchRec.
    learning: options of learning.
    method: options of the simulation.
    record: options of records.
    """

    run: RunOptions = field(default_factory=lambda: RunOptions.of(in_flight=1))
    learning: Learning = field(default_factory=Learning)
    method: Method = field(default_factory=Method)
    record: Record = field(default_factory=Record)

    def __post_init__(self) -> None:
        workload, outputs = self.run.workload, self.run.outputs
        for name, value in (("in_flight", 1), ("first_sample", 0), ("warmup", 0),
                            ("copied_rows", 0), ("own_bags", "nic")):
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
                    raise ValueError(f"{name} must be left out with --reference, which has no NICs")

    @classmethod
    def of(cls, **given: Any) -> "TrainOptions":
        """Return options from `TrainArguments` or members of the parts.

        None means the default. See :meth:`RunOptions.of`.
        """
        given = {"in_flight": 1} | {name: value for name, value in given.items()
                                    if value is not None}

        def part(kind: type) -> Any:
            return kind(**{field.name: given.pop(field.name) for field in fields(kind)
                           if field.name in given})

        learning, method, record = part(Learning), part(Method), part(Record)
        return cls(RunOptions.of(**given), learning, method, record)

    @property
    def gradient_wire(self) -> str:
        """The format of gradients between GPUs."""
        return self.learning.gradient_wire or gradients_beside(self.run.workload.wire)

    def check_files(self) -> None:
        """Raise ``ValueError`` if an output would overwrite an input or a different output.

        Call this before any file is opened.
        """
        check_outputs(self.files, self.run.workload.files)

    @property
    def files(self) -> dict[str, AnyPath | None]:
        """Output files by option name."""
        return self.run.outputs.files | {"checkpoint": self.record.checkpoint}

    def checkpoint_identity(self, partials: str, gradient_sums: str,
                            in_order: Sequence[int] = (),
                            pooled: Sequence[int] = ()) -> Mapping[str, object]:
        """Return the settings that a training must share with the checkpoint that it resumes.

        gradient_sums: field of the NICs' configuration.
        in_order: numbers of the tables whose gradients are summed in the order of the mini-batch.
        pooled: numbers of the tables that pool at their owner, whose repeats NICs can find.
        The number of nodes matters only if their partial sums are rounded, or the gradients of
        repeated bags of their shares are added.
        """
        asked, wires = self.run.workload, (self.run.workload.wire, self.gradient_wire)
        repeats = {REPEATS[0]: None, "nic": ["nic", *pooled]}.get(asked.repeats, asked.repeats)
        return {"mini_batch": asked.mini_batch,
                "batching": asked.window_samples and [asked.batching, asked.window_samples],
                "format": asked.format,
                "data": [asked.data] if isinstance(asked.data, str) else asked.data,
                "bytes": asked.data and [file.stat().st_size for file in input_files(asked.data)
                                         if file.is_file()],
                "samples": asked.sample_count,
                "gradient_partials": partials,
                "nodes": asked.nodes if partials == "rounded" or repeats else None,
                # None, as in a checkpoint without these values.
                "gradient_sums": None if gradient_sums == "exact" else gradient_sums,
                "in_order": list(in_order) or None, "repeats": repeats,
                "wires": None if set(wires) == {"float32"} else list(wires)}
