"""What a run is asked to do."""

from dataclasses import dataclass
from typing import Any

from host.batching import ALGORITHMS, WINDOW_BATCHES, algorithm_of
from host.timing.cluster import Cluster, load_cluster
from host.timing.gpu import GpuProfile
from host.timing.network import NetworkProfile
from host.timing.pcie import PcieProfile
from rtl.config import preset
from sim.engines.waves import WavesOptions
from sim.job.faults import Silence, parse_faults
from sim.job.settings import apply_settings

__all__ = ["FIDELITIES", "PATIENCE", "RunOptions"]

PATIENCE = 500_000
"""Cycles (2 ms) without a beat after which a run is given up: far longer than any answer takes."""

FIDELITIES = ("rtl", "model")
"""How a NIC is simulated: its RTL runs, or a model of it."""


@dataclass(frozen=True)
class RunOptions:
    """Options of :func:`sim.run.run.run`; the command line has the same names.

    Members
    -------
    config: preset of the NIC. settings: ``field=value`` changes, see :mod:`sim.job.settings`.
    model: name or TOML file of the DLRM; default by format, else by preset.
    nodes, samples, mini_batch, in_flight: of the run; ``samples`` None means all of a file, or
        1,024 of the generator. first_sample: those before it, which ``samples`` counts too, are
        left out; the others keep their numbers. warmup: mini-batches left out of the latencies;
        a run that finishes no others has no latencies.
    batching, window: how mini-batches are formed, one of :data:`host.batching.ALGORITHMS`, from
        windows of how many samples; None for 16 mini-batches. In the order of the file there are
        no windows.
    data, format: file of samples, folder of such, or several; without it the generator makes them.
    placement: ``table`` or ``row``.
    fidelity: ``rtl``, or ``model``: NICs are counted and timed without RTL (:mod:`sim.model`),
        and may have more nodes and larger caches than RTL.
    engine, threads, skip: how the RTL runs: ``verilator``, ``cxxrtl`` or ``pysim``, which give the
        same results; ``threads`` nodes run at once, with several beside the making of mini-batches
        and the check of the results; ``skip`` leaves out idle cycles.
    network, pcie, gpu: profiles of the timing models, or names or TOML files of such.
    waves, waves_node, waves_window: file, node and cycles (``FIRST:LAST``) of waveforms, see
        :class:`sim.engines.waves.WavesOptions`.
    cluster: what :meth:`of` took the nodes, NIC and profiles from that it was not given.
    faults: what falls silent and when, see :mod:`sim.job.faults`.
    patience: cycles without a beat anywhere after which the run is given up.
    mlp: ``fixed`` or ``blas``. seed: of rows, weights and generated samples.
    """

    config: str = "kaggle"
    settings: tuple[str, ...] = ()
    model: str | None = None
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
    placement: str = "table"
    engine: str = "verilator"
    fidelity: str = "rtl"
    threads: int = 2
    skip: bool = True
    network: str | NetworkProfile = "ethernet_100g_switch"
    pcie: str | PcieProfile = "pcie_gen3x16"
    gpu: str | GpuProfile = "gpu_rtx8000"
    mlp: str = "fixed"
    seed: int = 1
    cluster: str | None = None
    waves: str | None = None
    waves_node: int | None = None
    waves_window: str | None = None
    faults: str | None = None
    patience: int = PATIENCE

    def __post_init__(self) -> None:
        for name, low in (("nodes", 1), ("mini_batch", 1), ("in_flight", 1), ("threads", 1),
                          ("warmup", 0), ("seed", 0), ("first_sample", 0), ("patience", 1)):
            if getattr(self, name) < low:
                raise ValueError(f"{name} must be at least {low}, not {getattr(self, name)!r}")
        if self.samples is not None and self.samples < 1:
            raise ValueError(f"samples must be at least 1, not {self.samples!r}")
        if self.samples is not None and self.first_sample >= self.samples:
            raise ValueError(f"first_sample must be below samples ({self.samples}), which counts "
                             f"from the first of the input, not {self.first_sample!r}")
        if self.fidelity not in FIDELITIES:
            raise ValueError(f"fidelity must be one of {', '.join(FIDELITIES)}, "
                             f"not {self.fidelity!r}")
        if self.fidelity == "model" and self.waves is not None:
            raise ValueError("waves must go with fidelity rtl, not with model, which has no "
                             "signals")
        if self.in_flight > 256:
            raise ValueError(f"in_flight must be at most 256, not {self.in_flight!r}")
        if self.format is not None and self.data is None:
            raise ValueError(f"format must go with data, not {self.format!r} alone")
        self._check_batching()
        _ = self.traced, self.silences

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
        """Samples of a window; None for the order of the file."""
        if self.batching == "file":
            return None
        return WINDOW_BATCHES * self.mini_batch if self.window is None else self.window

    @property
    def traced(self) -> WavesOptions | None:
        """What is traced, None for nothing."""
        return WavesOptions.of(self.waves, self.waves_node, self.waves_window, self.nodes,
                               self.engine)

    @property
    def silences(self) -> tuple[Silence, ...]:
        """What falls silent."""
        return parse_faults(self.faults, self.nodes)

    @classmethod
    def of(cls, **given: Any) -> "RunOptions":
        """Return options of what is ``given`` and not None, the rest from the ``cluster``, if one
        is given, else their defaults.

        Another ``config`` replaces the whole NIC of the cluster; ``settings`` are added to its
        own, and go before them.
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
