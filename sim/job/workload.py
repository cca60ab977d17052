"""The workload of a command: a cluster with its NICs, and its samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from host.batching import ALGORITHMS, WINDOW_BATCHES, algorithm_of
from host.data.datasets import Paths
from host.hashing import check_seed
from host.model import Model
from host.placement.deal import check_placement
from host.timing.cluster import Cluster, load_cluster
from host.timing.gpu import GpuProfile
from host.timing.network import NetworkProfile
from host.timing.pcie import PcieProfile
from rtl.config import preset
from sim.job.fault_plan import FaultPlan
from sim.job.settings import apply_settings

__all__ = ["Workload", "check_cluster"]


@dataclass(frozen=True)
class Workload:
    """A cluster, a model and samples.

    Members
    -------
    config: preset of the NIC. settings: ``field=value`` changes of it, see :mod:`sim.job.settings`.
    model: the DLRM, or its name or TOML file; by default the format's model, else the preset's.
    nodes: number of nodes. placement: of the tables, one of
        :data:`host.placement.deal.PLACEMENTS`, or the node of each, such as ``0,0,1``.
    lookups: of each table, by which placement ``lookups`` deals them; None counts them in the
        input, see :func:`sim.job.placing.lookups_of`.
    copied_rows: tables of at most so many rows have a copy at every node; 0 for none.
    samples: number of samples to read; None means all of a file, or 1,024 of the generator.
    first_sample: number of the first sample to simulate. ``samples`` counts those before it too;
        the others keep their numbers.
    mini_batch, in_flight: samples per mini-batch, and mini-batches in flight at once.
    warmup: mini-batches whose latencies are not reported.
    batching, window: the algorithm that forms mini-batches, one of
        :data:`host.batching.ALGORITHMS`, and the samples of its window; None means 16 mini-batches.
        ``file`` keeps the order of the file and needs no window.
    data, format: a file of samples, a folder of such files, or several of both, and their format;
        without data the generator makes the samples.
    network, pcie, gpu: profiles of the timing models, or names or TOML files of such profiles.
    seed: of the rows, the weights and the generated samples.
    cluster: the cluster from which :meth:`of` took the nodes, NIC and profiles it was not given.
    faults: the parts that fall silent and the frames that are lost or changed, as text or as a
        file, see :meth:`sim.job.fault_plan.FaultPlan.of`.
    """

    config: str = "kaggle"
    settings: tuple[str, ...] = ()
    model: str | Model | None = None
    nodes: int = 4
    samples: int | None = None
    first_sample: int = 0
    mini_batch: int = 128
    in_flight: int = 4
    warmup: int = 0
    batching: str = "file"
    window: int | None = None
    data: str | tuple[str, ...] | None = None
    format: str | None = None
    placement: str = "even"
    lookups: tuple[int, ...] | None = None
    copied_rows: int = 0
    network: str | NetworkProfile = "ethernet_100g_switch"
    pcie: str | PcieProfile = "pcie_gen3x16"
    gpu: str | GpuProfile = "gpu_rtx8000"
    seed: int = 1
    cluster: str | None = None
    faults: str | None = None

    def __post_init__(self) -> None:
        for name, low in (("nodes", 1), ("mini_batch", 1), ("in_flight", 1), ("warmup", 0),
                          ("first_sample", 0), ("copied_rows", 0)):
            if getattr(self, name) < low:
                raise ValueError(f"{name} must be at least {low}, not {getattr(self, name)!r}")
        if self.samples is not None and self.samples < 1:
            raise ValueError(f"samples must be at least 1, not {self.samples!r}")
        if self.samples is not None and self.first_sample >= self.samples:
            raise ValueError(f"first_sample must be below samples ({self.samples}), which counts "
                             f"from the first of the input, not {self.first_sample!r}")
        if self.in_flight > 256:
            raise ValueError(f"in_flight must be at most 256, not {self.in_flight!r}")
        if self.format is not None and self.data is None:
            raise ValueError(f"format must go with data, not {self.format!r} alone")
        check_seed(self.seed)
        check_placement(self.placement)
        self._check_batching()
        _ = self.fault_plan

    def _check_batching(self) -> None:
        algorithm_of(self.batching)
        window = self.window_samples
        if window is None:
            if self.window is not None:
                names = ", ".join(name for name in ALGORITHMS if name != "file")
                raise ValueError(f"window must go with a batching of {names}, "
                                 f"not {self.window!r} with file")
            return
        if window < self.mini_batch:
            raise ValueError(f"window must be at least the {self.mini_batch} samples of a "
                             f"mini-batch, not {window!r}")
        if self.first_sample % window:
            raise ValueError(f"first_sample must be a multiple of the window ({window}), so that "
                             f"mini-batches are those of the whole input, "
                             f"not {self.first_sample!r}")

    @property
    def window_samples(self) -> int | None:
        """Samples of a window; None for file order."""
        if self.batching == "file":
            return None
        return WINDOW_BATCHES * self.mini_batch if self.window is None else self.window

    @property
    def files(self) -> dict[str, Paths]:
        """The input files, by the names of their options."""
        named = {name: getattr(self, name) for name in (
            "data", "model", "cluster", "network", "gpu", "pcie", "faults")}
        return {name: given for name, given in named.items()
                if isinstance(given, str | Sequence)}

    @cached_property
    def fault_plan(self) -> FaultPlan:
        """The faults, parsed or read from their file."""
        return FaultPlan.of(self.faults, self.nodes, self.seed)

    @classmethod
    def of(cls, **given: Any) -> "Workload":
        """Return the workload with the members that are ``given`` and not None.

        The others come from the ``cluster``, if one is given, else from the defaults. A given
        ``config`` replaces the whole NIC of the cluster; ``settings`` are added to those of the
        cluster and override them.
        """
        given = {name: value for name, value in given.items() if value is not None}
        if "cluster" not in given:
            return cls(**given)
        cluster = load_cluster(given["cluster"], check_cluster)
        parts = {name: getattr(cluster, name) for name in ("nodes", "network", "pcie", "gpu")}
        if "config" not in given:
            parts["config"] = cluster.nic.config
            settings = tuple(given.get("settings", ()))
            changed = {setting.partition("=")[0].strip() for setting in settings}
            given["settings"] = (*(setting for setting in cluster.nic.settings
                                   if setting.partition("=")[0] not in changed), *settings)
        return cls(**(parts | given))


def check_cluster(cluster: Cluster) -> None:
    """Raise ``ValueError`` for settings in a cluster that the NIC does not have."""
    apply_settings(preset(cluster.nic.config), list(cluster.nic.settings))
