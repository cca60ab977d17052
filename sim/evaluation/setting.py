"""Setting of an evaluation: values that all points share."""

from dataclasses import dataclass, replace
from typing import Any

from host.data.datasets import Paths, check_files, input_files, known_format
from host.samples import Samples, concatenate
from sim.evaluation.fields import DATASETS, SETTING_NAMES, mini_batch_of, model_of
from sim.evaluation.point import Point
from sim.evaluation.systems import canonical, fixed_for, system_of
from sim.evaluation.trace import ENDLESS, first_of
from sim.job.inputs import SampleSource
from sim.job.workload import Workload as JobWorkload

__all__ = ["BASES", "DEMO", "FULL_SYSTEMS", "PAPER_LIKE", "SETTINGS", "SHARES", "SOFTWARES",
           "Setting", "Source", "like", "samples_of"]

SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Cache sizes of a sweep, as shares of the unique keys that reach the cache."""

SOFTWARES = ("eager", "tuned")
BASES = ("bl-paper", "bl-tuned")
"""GPU baselines; every headline compares with both."""

FULL_SYSTEMS = ("fs",)
"""Full SmartNIC systems; every headline is given for each. The first is the paper's, which the
claims are about."""


@dataclass(frozen=True)
class Source:
    """Source of a data set's samples: files of a format, or the generator without files."""

    data: tuple[str, ...] = ()
    format: str | None = None

    @classmethod
    def of(cls, data: Paths, format: str | None) -> "Source":
        """Return the source of files or folders; a missing format is guessed.

        Raises :class:`host.errors.InputError`, also for a pipe.
        """
        check_files(data, "for the points, each of which reads it")
        return cls(tuple(map(str, input_files(data))), known_format(data, format))

    def __str__(self) -> str:
        if not self.data:
            return "generator"
        return f"{', '.join(self.data)} ({self.format})"


@dataclass(frozen=True)
class Setting:
    """Values that the points of an evaluation share.

    Members
    -------
    datasets: evaluated data sets. sources: sources of the data sets whose samples come from files.
    softwares: software profiles, charged to baselines and SmartNIC systems alike.
    fidelity: fidelity of the sweeps. markers: whether two points of a figure also run in ``rtl``,
        on the Kaggle shape with the first profile.
    nodes: nodes of figures that do not sweep them. scale_nodes: swept numbers of nodes.
    placement: placement of the tables over the nodes.
    shares: swept cache sizes.
    gpu: GPU profile. warmup, measured: mini-batches.
    seeds: seeds of all random numbers. Headlines and their figures use every seed, all other points
        the first.
    mini_batches: samples of a mini-batch by data set, if they differ from the reference setting.
    swept: mini-batches measured, after equally many of warm-up, in sweeps of cache sizes or nodes,
        by data set. It is at least a whole window, because similarity decreases within a window. On
        such a data set a sweep uses every other cache size, and of the numbers of nodes the least,
        ``nodes`` and the most.
    every: further fields of all points that accept them, by name. ``copied_rows`` applies in
        inference only; ``scaled`` omits constants of other software profiles.
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

    def __post_init__(self) -> None:
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"seeds must be distinct, at least one, not {self.seeds!r}")

    @property
    def seed(self) -> int:
        """The first of the seeds."""
        return self.seeds[0]

    def source(self, dataset: str) -> Source:
        """Return the source of a data set's samples."""
        return dict(self.sources).get(dataset, Source())

    def mini_batch(self, dataset: str) -> int:
        """Return the samples of a mini-batch over all nodes."""
        return dict(self.mini_batches).get(dataset) or mini_batch_of(dataset)

    def sizes(self, dataset: str) -> tuple[float, ...]:
        """Return the cache sizes that are swept on a data set, the largest included."""
        return self.shares[::-2][::-1] if dataset in dict(self.swept) else self.shares

    def numbers_of_nodes(self, dataset: str) -> tuple[int, ...]:
        """Return the numbers of nodes that are swept on a data set, the least and the most
        included."""
        kept = (min(self.scale_nodes), self.nodes, max(self.scale_nodes))
        return tuple(nodes for nodes in self.scale_nodes
                     if nodes in kept or dataset not in dict(self.swept))

    def sweep(self, dataset: str) -> dict[str, int]:
        """Return the fields of a point in a sweep: its numbers of mini-batches."""
        count = dict(self.swept).get(dataset)
        return {"warmup": self.warmup if count is None else min(self.warmup, count),
                "measured": self.measured if count is None else min(self.measured, count)}

    def point(self, dataset: str, system: str, workload: str = "inference",
              software: str = "eager", **fields: Any) -> Point:
        """Return a point of this setting; ``system`` may contain ``ga`` or be ``fs``.

        A point with its own cache size or number of nodes belongs to a sweep. Of ``fixed``, it has
        the options of its system.
        """
        source, kind = self.source(dataset), system_of(canonical(system, workload)[0])
        common = {"nodes": self.nodes, "placement": self.placement,
                  "mini_batch": self.mini_batch(dataset), "gpu": self.gpu, "seed": self.seed,
                  "fidelity": self.fidelity if kind.in_rtl else "model",
                  "data": source.data, "format": source.format,
                  "warmup": self.warmup, "measured": self.measured}
        if not fields.keys().isdisjoint(("nodes", "local_cache", "remote_cache")):
            common |= self.sweep(dataset)
        if "fixed" in fields:
            fields["fixed"] = fixed_for(kind.name, fields["fixed"])
        every = dict(self.every)
        if workload == "training":
            every.pop("copied_rows", None)
        others = tuple(f"software_{other}." for other in SOFTWARES if other != software)
        if "scaled" in every:
            every["scaled"] = tuple(each for each in every["scaled"]
                                    if not each[0].startswith(others))
        # Lists in both the setting and the point, such as scaled constants, are joined.
        fields |= {name: tuple(dict.fromkeys((*every[name], *value)))
                   for name, value in fields.items()
                   if name in every and isinstance(value, tuple)}
        return Point.named(system, common | every, dataset=dataset, workload=workload,
                           software=software, **fields)

    def in_words(self) -> str:
        """Return the fixed values except data sets, cluster and seed."""
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
"""Setting of the phase map in which most of the paper's claims hold: 50 Gb/s, mini-batches of
2,048, 5 us per operator, launched gathers as in the paper."""

SETTINGS = dict(zip(SETTING_NAMES, (Setting(), PAPER_LIKE), strict=True))
"""Settings by name."""


def like(setting: Setting, name: str) -> Setting:
    """Return the setting of `SETTINGS` with the data sets, cluster and samples of ``setting``;
    returns ``setting`` itself if it already has that name's values."""
    found = SETTINGS[name]
    if (setting.every, setting.swept) == (found.every, found.swept):
        return setting
    return replace(setting, mini_batches=found.mini_batches, swept=found.swept, every=found.every)


def samples_of(setting: Setting, dataset: str, count: int) -> Samples:
    """Return the first ``count`` samples of a data set, fewer if its files have fewer."""
    source = setting.source(dataset)
    workload = JobWorkload(data=source.data or None, format=source.format, samples=ENDLESS,
                           seed=setting.seed)
    return concatenate(first_of(SampleSource(workload, model_of(dataset), source.format), count))


DEMO = Setting(datasets=("kaggle",), scale_nodes=(2, 4), shares=(0.0, 0.1, 0.5),
               warmup=16, measured=16)
"""Setting of ``make demo``: one data set, few points."""
