"""The setting of an evaluation: what all points have in common."""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from host.data.contents import check_contents, contents
from host.model import MODELS
from host.samples import Samples, concatenate
from sim.evaluation.fields import DATASETS, MINI_BATCH, SETTING_NAMES
from sim.evaluation.point import Point
from sim.evaluation.systems import canonical, system_of
from sim.job.inputs import SampleSource
from sim.job.workload import Workload as JobWorkload

__all__ = ["BASES", "DEMO", "FULL_SYSTEMS", "PAPER_LIKE", "SETTINGS", "SHARES", "SOFTWARES",
           "Setting", "Source", "like", "samples_of"]

SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Sizes of a cache in a sweep, as shares of the unique keys that reach it."""

SOFTWARES = ("eager", "tuned")
BASES = ("bl-paper", "bl-tuned")
"""Baselines on a GPU; every headline is given against both."""

FULL_SYSTEMS = ("fs",)
"""Systems with all that a SmartNIC can do; every headline is given for each. The paper's is the
first, of which its claims are."""


@dataclass(frozen=True)
class Source:
    """Where the samples of a data set come from: files of a format, or without any the generator.
    """

    data: tuple[str, ...] = ()
    format: str | None = None

    def __str__(self) -> str:
        if not self.data:
            return "generator"
        return f"{', '.join(self.data)} ({self.format})"


@dataclass(frozen=True)
class Setting:
    """What the points of an evaluation share.

    Members
    -------
    datasets: evaluated. sources: of those whose samples come from files.
    softwares: profiles, charged to baselines and SmartNIC systems alike.
    fidelity: of the sweeps. markers: whether two points of a figure are run in ``rtl`` besides, on
        the Kaggle shape with the first profile.
    nodes: where a figure does not sweep them. scale_nodes: where one does.
    placement: of the tables over the nodes.
    shares: sizes of caches that are swept.
    gpu: profile of the GPUs. warmup, measured: mini-batches.
    seeds: of all random numbers. Headlines, and the figures that they are from, are measured with
        each of them, all else with the first.
    mini_batches: samples of a mini-batch by data set, where it is not the reference setting's.
    swept: mini-batches measured, after as many of warm-up, where a figure sweeps cache sizes or
        nodes, by data set: those of Terabyte are 16 times as large as the others'. At least a
        whole window, since similarity falls from its first mini-batch to its last. On such a data
        set every other size of a cache is left out, and of the numbers of nodes all but the least,
        ``nodes`` and the most.
    every: further fields of all points that can have them, by name; ``copied_rows`` only in
        inference, and of ``scaled`` no constants of the software profile that a point has not.
    draws: joint draws of the Monte Carlo. nic_sets: settings of NICs that the draws of a data set
        share, at most.
    """

    datasets: tuple[str, ...] = DATASETS
    sources: tuple[tuple[str, Source], ...] = ()
    softwares: tuple[str, ...] = SOFTWARES
    fidelity: str = "model"
    markers: bool = False
    nodes: int = 4
    placement: str = "even"
    scale_nodes: tuple[int, ...] = (2, 4, 8, 16)
    shares: tuple[float, ...] = SHARES
    gpu: str = "gpu_rtx8000"
    warmup: int = 32
    measured: int = 32
    seeds: tuple[int, ...] = (1,)
    mini_batches: tuple[tuple[str, int], ...] = ()
    swept: tuple[tuple[str, int], ...] = (("terabyte", 16),)
    every: tuple[tuple[str, Any], ...] = ()
    draws: int = 1000
    nic_sets: int = 64

    def __post_init__(self) -> None:
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"seeds must be at least one, each once, not {self.seeds!r}")

    @property
    def seed(self) -> int:
        """The first of the seeds."""
        return self.seeds[0]

    def source(self, dataset: str) -> Source:
        """Return where the samples of a data set come from."""
        return dict(self.sources).get(dataset, Source())

    def mini_batch(self, dataset: str) -> int:
        """Return the samples of a mini-batch over all nodes."""
        return dict(self.mini_batches).get(dataset, MINI_BATCH[dataset])

    def sizes(self, dataset: str) -> tuple[float, ...]:
        """Return the sizes of caches that are swept on a data set, the largest among them."""
        return self.shares[::-2][::-1] if dataset in dict(self.swept) else self.shares

    def numbers_of_nodes(self, dataset: str) -> tuple[int, ...]:
        """Return the nodes that are swept on a data set, the least and the most among them."""
        kept = (min(self.scale_nodes), self.nodes, max(self.scale_nodes))
        return tuple(nodes for nodes in self.scale_nodes
                     if nodes in kept or dataset not in dict(self.swept))

    def sweep(self, dataset: str) -> dict[str, int]:
        """Return the fields of a point in a sweep: how many mini-batches."""
        count = dict(self.swept).get(dataset)
        return {"warmup": self.warmup if count is None else min(self.warmup, count),
                "measured": self.measured if count is None else min(self.measured, count)}

    def point(self, dataset: str, system: str, workload: str = "inference",
              software: str = "eager", **fields: Any) -> Point:
        """Return a point of this setting; ``system`` may have ``ga`` or be ``fs``.

        A point with a cache size or a number of nodes of its own is one of a sweep.
        """
        source, kind = self.source(dataset), system_of(canonical(system, workload)[0])
        common = {"nodes": self.nodes, "placement": self.placement,
                  "mini_batch": self.mini_batch(dataset), "gpu": self.gpu, "seed": self.seed,
                  "fidelity": self.fidelity if kind.in_rtl else "model",
                  "data": source.data, "format": source.format,
                  "warmup": self.warmup, "measured": self.measured}
        if not fields.keys().isdisjoint(("nodes", "local_cache", "remote_cache")):
            common |= self.sweep(dataset)
        every = dict(self.every)
        if workload == "training":
            every.pop("copied_rows", None)
        others = tuple(f"software_{other}." for other in SOFTWARES if other != software)
        if "scaled" in every:
            every["scaled"] = tuple(each for each in every["scaled"]
                                    if not each[0].startswith(others))
        # What a setting and a point both have a list of, such as constants, adds up.
        fields |= {name: tuple(dict.fromkeys((*every[name], *value)))
                   for name, value in fields.items()
                   if name in every and isinstance(value, tuple)}
        return Point.named(system, common | every, dataset=dataset, workload=workload,
                           software=software, **fields)

    def in_words(self) -> str:
        """Return what it fixes beside data sets, cluster and seed."""
        sizes = {self.mini_batch(dataset) for dataset in self.datasets}
        said = [f"mini-batches of {', '.join(f'{size:,}' for size in sorted(sizes))}",
                f"tables placed {self.placement}"]
        every = dict(self.every)
        said += [f"{name} x{factor:g}" for name, factor in every.pop("scaled", ())]
        said += every.pop("settings", ())
        return ", ".join(said + [name.replace("_", " ") if value is True else f"{name} {value}"
                                 for name, value in every.items()])

PAPER_LIKE = Setting(
    mini_batches=tuple((dataset, 2048) for dataset in DATASETS),
    every=(("scaled", (("ethernet_100g_switch.bandwidth_gbit_s", 0.5),
                       *((f"software_{software}.operator_us", 0.25) for software in SOFTWARES))),))
"""Where most of the paper's claims hold in the phase map: 50 Gb/s, mini-batches of 2,048, 5 us for
an operator. Gathers are launched, as in the paper."""

SETTINGS = dict(zip(SETTING_NAMES, (Setting(), PAPER_LIKE), strict=True))
"""Settings by name."""


def like(setting: Setting, name: str) -> Setting:
    """Return the setting of `SETTINGS` on the data sets, the cluster and the samples of
    ``setting``; one of its own name is ``setting`` itself."""
    found = SETTINGS[name]
    if (setting.every, setting.swept) == (found.every, found.swept):
        return setting
    return replace(setting, mini_batches=found.mini_batches, swept=found.swept, every=found.every)


def samples_of(setting: Setting, dataset: str, count: int) -> Samples:
    """Return the first ``count`` samples of a data set, fewer where its files have fewer."""
    source = setting.source(dataset)
    return _samples(dataset, source, setting.seed, count, contents(source.data))


@cache
def _samples(dataset: str, source: Source, seed: int, count: int, read: tuple[str, ...]) -> Samples:
    given = (source.data, source.format) if source.data else (None, None)
    workload = JobWorkload(data=given[0], format=given[1], samples=count, seed=seed)
    chunks = list(SampleSource(workload, MODELS[dataset], given[1]).chunks())
    check_contents(source.data, read)
    return concatenate(chunks)


DEMO = Setting(datasets=("kaggle",), scale_nodes=(2, 4), shares=(0.0, 0.1, 0.5),
               warmup=16, measured=16)
"""What ``make demo`` evaluates: one data set, few points."""
