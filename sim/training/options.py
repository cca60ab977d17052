"""What a training is asked to do."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from host.dlrm.optimizer import Optimizer
from sim.job.inputs import GENERATED
from sim.job.options import RunOptions

__all__ = ["FIDELITIES", "TrainOptions"]

FIDELITIES = ("rtl", "model")


@dataclass(frozen=True)
class TrainOptions:
    """Options of :func:`sim.training.train.train`; the command line has the same names.

    Members
    -------
    run: samples, model, cluster and engine, see :class:`sim.job.options.RunOptions`; ``in_flight``
        is 1, ``first_sample`` and ``warmup`` 0.
    optimizer: of rows; the MLPs learn at its rate, by SGD.
    epochs: how often all samples are gone through.
    interval: mini-batches over which loss, accuracy and AUC are taken.
    fidelity: ``rtl``, NICs cycle by cycle, or ``model``, the numpy reference alone.
    checkpoint: file that training goes on from if it is there, and that it leaves.
    compare: whether the rows that every step wrote are compared with those of the reference.
    """

    run: RunOptions = field(default_factory=lambda: RunOptions(in_flight=1))
    optimizer: Optimizer = field(default_factory=Optimizer)
    epochs: int = 1
    interval: int = 100
    fidelity: str = "rtl"
    checkpoint: str | None = None
    compare: bool = True

    def __post_init__(self) -> None:
        for name in ("epochs", "interval"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)!r}")
        if self.fidelity not in FIDELITIES:
            raise ValueError(f"fidelity must be {' or '.join(FIDELITIES)}, "
                             f"not {self.fidelity!r}")
        for name, value in (("in_flight", 1), ("first_sample", 0), ("warmup", 0)):
            if getattr(self.run, name) != value:
                raise ValueError(f"{name} must be {value} in training, "
                                 f"not {getattr(self.run, name)!r}")
        if self.fidelity == "model":
            for name in ("faults", "waves"):
                if getattr(self.run, name) is not None:
                    raise ValueError(f"{name} must go with fidelity rtl, not with model")

    @classmethod
    def of(cls, *, optimizer: str | None = None, learning_rate: float | None = None,
           epsilon: float | None = None, epochs: int = 1, interval: int = 100,
           fidelity: str = "rtl", checkpoint: str | None = None, compare: bool = True,
           **given: Any) -> "TrainOptions":
        """Return options of what is given; those of the run as :meth:`RunOptions.of` has them."""
        chosen = {"name": optimizer, "learning_rate": learning_rate, "epsilon": epsilon}
        return cls(RunOptions.of(**{"in_flight": 1, **given}),
                   replace(Optimizer(), **{k: v for k, v in chosen.items() if v is not None}),
                   epochs, interval, fidelity, checkpoint, compare)

    def in_common(self, partials: str) -> Mapping[str, object]:
        """Return what a run that goes on from a checkpoint must have as the one that left it.

        How many nodes there are matters only where their partial sums are rounded.
        """
        run = self.run
        return {"mini_batch": run.mini_batch,
                "batching": run.window_samples and [run.batching, run.window_samples],
                "format": run.format,
                "data": [run.data] if isinstance(run.data, str) else run.data,
                "samples": run.samples or (GENERATED if run.data is None else None),
                "gradient_partials": partials,
                "nodes": run.nodes if partials == "rounded" else None}
