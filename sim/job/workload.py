"""The workload of a command: a cluster with its NICs, and its samples.

To add an option to ``run``, add a field here, in ``simulation.py`` or, for files, in
``outputs.py``; for its JSON, also add the name to ``_REPORTED`` of ``options.py``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gen.base.option import AnyPath, AnyPaths, option
from host.batching import ALGORITHMS, REPEATS, WINDOW_BATCHES, algorithm_of
from host.data.datasets import DATA_HELP, FORMAT_HELP, Paths
from host.data.indexing import INDEX_HELP, format_of
from host.dlrm.codecs import CODECS
from host.hashing import check_seed
from host.model import Model
from host.placement.deal import PLACEMENTS, check_placement
from host.timing.cluster import Cluster, load_cluster
from host.timing.gpu import GpuProfile
from host.timing.network import NetworkProfile
from host.timing.pcie import PcieProfile
from host.toml.profile import load_profile
from rtl.config import preset
from sim.job.arguments import check_bounds
from sim.job.columns import FORMS, parse_slices
from sim.job.fault_plan import FaultPlan
from sim.job.settings import apply_settings

__all__ = ["GENERATED", "MEASURED", "POOLS", "Workload", "check_cluster"]

GENERATED = 1024
"""Number of samples that the generator makes by default."""

MEASURED = 4096
"""Samples at the start of the input for counting lookups."""

POOLS = ("requester", "owner", "auto")
"""Values of ``pool`` that are no file."""

_PROFILE = "{} profile: its name or a TOML file."


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A cluster, a model and samples.

    Members that are not options of a command:

    settings: ``field=value`` changes of the NIC, see :mod:`sim.job.settings`.
    gpus: GPUs of a node, which is a NIC with the GPUs that it serves; ``gpu`` is their profile
        together, see :meth:`host.timing.gpu.GpuProfile.together`.
    lookups: lookups per table, for placement ``lookups``; None counts them in the input, see
        :func:`sim.job.inputs.SampleSource.lookups`.
    owner_tables: numbers of the tables that pool at their owner, in place of ``pool``; their own
        bags take no time in the run, because the caller charges the GPU for them. None for
        ``pool``.

    ``model``: None selects the model of the format, else of the preset. ``cluster``: source of the
    nodes, NIC and profiles that :meth:`of` did not receive. ``index`` ``exact`` changes ``format``,
    see :func:`host.data.indexing.format_of`.
    """

    config: str = option("kaggle", "NIC preset; replaces the NIC of --cluster.", of_cluster=True)
    settings: tuple[str, ...] = ()
    model: AnyPath | Model | None = option(None, "DLRM: a preset or a TOML file.")
    cluster: AnyPath | None = option(
        None, "Nodes, links and NIC: a preset or a TOML file. Other options override it.")
    nodes: int = option(4, "Nodes of the cluster.", least=1, of_cluster=True)
    samples: int | None = option(
        None, "Samples to read. Default: all samples of a file, or 1,024 generated samples.",
        least=1)
    first_sample: int = option(
        0, "Start at this sample, to resume a stopped run. Samples keep their numbers; --samples "
        "includes the samples left out.", least=0)
    mini_batch: int = option(128, "Samples of a mini-batch, over all nodes.", least=1)
    batching: str = option(
        "file", "Algorithm that forms mini-batches from a window of samples. file: order of the "
        "file; sort: sorted order; greedy: most keys in common; graph: faster than greedy; "
        "graph-printed: the graph algorithm as the paper prints it.")
    window: int | None = option(
        None, "Samples that are loaded before mini-batches are formed from them.",
        shown="16 mini-batches")
    in_flight: int = option(4, "Mini-batches in flight at once.", least=1, most=256)
    warmup: int = option(0, "Mini-batches without reported latencies.", least=0)
    data: AnyPaths | None = option(None, DATA_HELP)
    format: str | None = option(None, FORMAT_HELP)
    index: str = option("hash", INDEX_HELP)
    placement: str = option(
        "even",
        f"Where rows are held. {'; '.join(': '.join(item) for item in PLACEMENTS.items())}. "
        f"Lookups are counted in the first {MEASURED:,} samples. Where nodes exceed tables, rows "
        f"are hashed.")
    lookups: tuple[int, ...] | None = None
    gpus: int = 1
    owner_tables: tuple[int, ...] | None = None
    copied_rows: int = option(
        0, "Copy tables of at most this many rows to every node; 0: no copies.", least=0)
    pool: AnyPath = option(
        "requester", "Node that pools the bags of a table. requester: the node of the sample, "
        "which looks up every row. owner: the node of the rows, which sends a vector per bag, for "
        "all tables whose rows are not hashed and whose bags fit a packet. auto: the node that "
        f"needs fewer bytes on the network, counted in the first {MEASURED:,} samples. Or a TOML "
        "file with the tables that pool at the owner, by name or number: "
        "owner = [\"items seen\", 3].", metavar="requester|owner|auto|FILE")
    own_bags: str = option(
        "nic", "Where the bags of a node's own samples are pooled, in tables that pool at the "
        "requester and that the node holds whole. nic: the NIC looks up their rows; gpu: the GPU "
        "pools them as those of tables that pool at the owner, and they do not pass the NIC.",
        among=("nic", "gpu"))
    repeats: str = option(
        "send", "Equal bags of a table in a node's share of a mini-batch. send: send all of them; "
        "neighbours: send a bag once to consecutive samples, and copy its vector; indices: send "
        "each distinct bag once, and copy its vector; nic: send all, and NICs look up a bag of a "
        "table that pools at its owner once for consecutive samples. In training, the GPU adds "
        "the gradients of these bags, and sends their sum.", among=(*REPEATS, "nic"))
    wire: str = option(
        "float32", "Format of vectors between GPUs. With other formats than float32, GPUs round "
        "vectors, and NICs move fewer bytes. NICs, or GPUs with --set deliver=unique, convert them "
        "to float32. int8, int8_row and training require deliver=unique. int8: with a scale and a "
        "bias for each 32 values; int8_row: for each vector.",
        among=tuple(CODECS))
    columns: str | None = option(
        None, "Tables that are placed in slices of some columns, each slice with an owner: the "
        "name or number of a table, and the values of a row in a slice. The slices pool at their "
        "owners, get all keys of the table, and send a part of its vector each, which the GPU "
        "joins. For example 20:32.", metavar=FORMS["columns"])
    blocks: str | None = option(
        None, "Tables that are placed in blocks of consecutive rows, each block with an owner: the "
        "name or number of a table, and the number of blocks. The blocks pool at their owners, get "
        "the keys of their rows, and send a sum each. GPUs add the sums in the order of blocks. "
        "For example 20:8.", metavar=FORMS["blocks"])
    network: AnyPath | NetworkProfile = option(
        "ethernet_100g_switch", _PROFILE.format("Network"), of_cluster=True)
    gpu: AnyPath | GpuProfile = option("gpu_rtx8000", _PROFILE.format("GPU"), of_cluster=True)
    pcie: AnyPath | PcieProfile = option("pcie_gen3x16", _PROFILE.format("PCIe"), of_cluster=True)
    seed: int = option(1, "Seed of the rows, weights and generated samples.")
    faults: AnyPath | None = option(
        None, "Faults. A silent part (host, gpu, network) of a node or of all nodes: "
        "silent-PART=START:LENGTH[@NODE]; lost, changed or late frames between NICs: "
        "KIND[-OPCODE]=RATE or #N[:TIME][@LINK], KIND being drop, duplicate, reorder, corrupt, "
        "delay; links down: down=START:LENGTH[@LINK]; a restarted NIC: "
        "restart=START:LENGTH@NODE. For example silent-gpu=20us:1ms@2,drop-vectors=1e-3@0>1. Or "
        "a file: TOML, or the JSON of a run, to repeat its faults.", metavar="FAULT,...|FILE")

    def __post_init__(self) -> None:
        object.__setattr__(self, "format", format_of(self))
        check_bounds(self)
        if self.samples is not None and self.first_sample >= self.samples:
            raise ValueError(f"first_sample must be below samples ({self.samples}), which counts "
                             f"from the first of the input, not {self.first_sample!r}")
        if self.format is not None and self.data is None:
            raise ValueError(f"format must go with data, not {self.format!r} alone")
        check_seed(self.seed)
        check_placement(self.placement)
        if self.pool not in POOLS and not str(self.pool).endswith(".toml"):
            raise ValueError(f"pool must be {', '.join(POOLS)} or a TOML file, not {self.pool!r}")
        for name in FORMS:
            _ = parse_slices(name, getattr(self, name))
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
    def sample_count(self) -> int | None:
        """Samples of the input, the ones left out too; None where the length of files decides."""
        return self.samples or (GENERATED if self.data is None else None)

    @property
    def host_repeats(self) -> str:
        """The ``repeats`` that hosts find, of :data:`host.batching.repeats.REPEATS`."""
        return "send" if self.repeats == "nic" else self.repeats

    @property
    def window_samples(self) -> int | None:
        """Samples of a window; None for file order."""
        if self.batching == "file":
            return None
        return WINDOW_BATCHES * self.mini_batch if self.window is None else self.window

    @property
    def files(self) -> dict[str, Paths]:
        """The input files by option name."""
        named = {name: getattr(self, name) for name in (
            "data", "model", "cluster", "network", "gpu", "pcie", "faults", "pool")}
        return {name: given for name, given in named.items()
                if isinstance(given, str | Sequence)}

    @cached_property
    def fault_plan(self) -> FaultPlan:
        """The faults, parsed or read from their file."""
        return FaultPlan.of(self.faults, self.nodes, self.seed)

    @classmethod
    def of(cls, **given: Any) -> "Workload":
        """Return the workload with the members that are ``given`` and not None.

        Other members come from the ``cluster``, if given, else from the defaults. A given
        ``config`` replaces the whole NIC of the cluster; ``settings`` extend and override the
        settings of the cluster.
        """
        given = {name: value for name, value in given.items() if value is not None}
        if "cluster" not in given:
            return cls(**given)
        cluster = load_cluster(given["cluster"], check_cluster)
        served = cluster.gpus // cluster.nics
        parts = {"network": cluster.network, "pcie": cluster.pcie, "gpus": served,
                 "gpu": cluster.gpu}
        if served > 1:
            one = load_profile(given.get("gpu", cluster.gpu), GpuProfile, field="gpu")
            given["gpu"] = one.together(served)
        given["nodes"] = cluster.nics * given.get("nodes", cluster.nodes)
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
