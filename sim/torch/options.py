"""Options of a PyTorch program on NICs."""

import json
from dataclasses import asdict, dataclass, field, replace

from host.placement.deal import PLACEMENTS, check_placement, given_owners
from host.toml.profile import profile_names
from rtl.config import preset
from sim.engines import ENGINES
from sim.evaluation.fields import software_names
from sim.evaluation.systems import canonical, system_of
from sim.job.options import RunOptions
from sim.job.settings import apply_settings
from sim.job.simulation import FIDELITIES
from sim.torch.lookups.bags import DIMENSIONS
from sim.torch.systems import SYSTEMS, Setting, dataset_of, sizes_beyond

__all__ = ["TorchOptions", "from_environment", "to_environment"]

_NICS = {name: kind.program_settings for name, system in SYSTEMS.items()
         if (kind := system_of(canonical(system)[0])).has_nics}
"""Systems with NICs, and what theirs do for a program. FS pools; EN gives each different vector of
a share once, and the hosts pool. Either leaves the interaction to the program."""
_OPTIMIZER_ON = ("host", "nic")

_TEXTS = ("system", "placement", "fidelity", "optimizer_on", "software", "gpu", "engine")
_NUMBERS = {"threads": 1, "seed": 0}
"""The least values of members that are numbers."""

_ALONE = 4
"""Nodes over which the mini-batches of one process are dealt."""


@dataclass(frozen=True)
class TorchOptions:
    """How a program runs, and what its mini-batches are timed on.

    Members
    -------
    system: that the program runs on, one of :data:`sim.torch.systems.SYSTEMS`.
    nodes: over which each mini-batch is dealt; None for as many as the program has processes, or 4
        where it has one. placement: of the tables over them, where the processes hold no different
        ones.
    fidelity: where vectors come from: ``rtl``, or ``model``, the bit-exact numerics.
    optimizer_on: where rows are updated: ``host``, by PyTorch's optimizer, or ``nic``, by the NICs'
    SGD or row-wise Adagrad.
    config: preset of the NIC that runs in RTL; None for the one that fits the vectors.
    settings: ``field=value`` changes of the NIC.
    software, gpu: profiles of the systems. engine, threads: of the RTL, see
    :class:`sim.job.simulation.Simulation`. seed: of what systems draw.

    Raises ``ValueError`` or ``TypeError`` that names field, value and bound.
    """

    system: str = "FS"
    nodes: int | None = None
    placement: str = "even"
    fidelity: str = "model"
    optimizer_on: str = "host"
    config: str | None = None
    settings: tuple[str, ...] = ()
    software: str = "eager"
    gpu: str = "gpu_rtx8000"
    engine: str = "verilator"
    threads: int = 2
    seed: int = 1
    timed: Setting = field(init=False)

    def __post_init__(self) -> None:
        self._check_plain()
        for name, known in (("system", SYSTEMS), ("fidelity", FIDELITIES),
                            ("optimizer_on", _OPTIMIZER_ON), ("engine", ENGINES),
                            ("software", software_names()), ("gpu", profile_names("gpu_"))):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, "
                                 f"not {getattr(self, name)!r}")
        check_placement(self.placement)
        if given_owners(self.placement) is not None:
            raise ValueError(f"placement of a PyTorch program must be one of "
                             f"{', '.join(PLACEMENTS)}, not {self.placement!r}")
        if self.fidelity == "rtl" and self.system not in _NICS:
            raise ValueError(f"system must be one of {', '.join(_NICS)} with fidelity rtl, "
                             f"not {self.system!r}, which has no NIC")
        if self.optimizer_on == "nic" and self.system not in _NICS:
            raise ValueError(f"system must be one of {', '.join(_NICS)} with optimizer_on nic, "
                             f"not {self.system!r}, which has no NIC")
        for each in self.settings:
            name, _, value = each.partition("=")
            if name.strip() == "interaction":
                raise ValueError(f"interaction must be left to the systems, of which each says "
                                 f"whether its NICs compute it, not set to {value.strip()!r}")
        base, _ = apply_settings(preset(self.config or "kaggle"), list(self.settings))
        if not 1 <= self.count <= base.nodes:
            raise ValueError(f"nodes must be between 1 and {base.nodes}, not {self.count!r}")
        object.__setattr__(self, "timed", Setting(
            self.count, self.placement, self.software, self.gpu, self.settings, self.seed))

    def _check_plain(self) -> None:
        for name in _TEXTS:
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"{name} must be text, not {getattr(self, name)!r}")
        for name, value in (("nodes", self.count), ("threads", self.threads), ("seed", self.seed)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be an integer, not {value!r}")
        for name, least in _NUMBERS.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, not {getattr(self, name)!r}")

    @property
    def count(self) -> int:
        """Nodes of the cluster."""
        return _ALONE if self.nodes is None else self.nodes

    @property
    def widest(self) -> int:
        """The most values of a vector of the NICs that run: `DIMENSIONS`, unless ``max_dimension``
        is set."""
        own = [each for each in self.settings if each.partition("=")[0].strip() == "max_dimension"]
        if self.fidelity != "rtl" or not own:
            return DIMENSIONS
        config, _ = apply_settings(preset(self.config or "kaggle"), own)
        return min(DIMENSIONS, config.max_dimension)

    def of_processes(self, size: int) -> "TorchOptions":
        """Return the options of a program with so many processes, each of them a node.

        ``ValueError`` where another number of nodes was asked for.
        """
        if self.nodes not in (None, size):
            raise ValueError(f"nodes must be {size}, the processes of the program, not "
                             f"{self.nodes!r}")
        return replace(self, nodes=size)

    def cluster(self, tables: int, dimension: int, slots: int,
                placement: str | None = None) -> RunOptions:
        """Return the options of NICs for so many tables, vectors of a padded ``dimension``, and
        samples of at most so many slots."""
        name = self.config or dataset_of(dimension)
        own = (*_NICS[self.system], *self.settings)
        if self.optimizer_on == "nic" and not any(
                each.partition("=")[0].strip() == "remote_cache" for each in own):
            own = ("remote_cache=false", *own)  # its copies would not follow what NICs write
        base, _ = apply_settings(preset(name), list(own))
        return RunOptions.of(
            config=name, settings=(*sizes_beyond(base, {
                "tables": tables, "max_dimension": dimension, "hold_vectors": 2 * slots}), *own),
            nodes=self.count, placement=placement or self.placement, gpu=self.gpu, seed=self.seed,
            fidelity="rtl", engine=self.engine, threads=self.threads, in_flight=1)

    def to_json(self) -> dict:
        """Return the members as plain values."""
        return {name: getattr(self, name) for name in (
            "system", "placement", "fidelity", "optimizer_on", "config", "software", "gpu",
            "engine", "threads", "seed")} | {"nodes": self.count, "set": list(self.settings)}


def to_environment(options: TorchOptions, server: str) -> str:
    """Return the options of a program and the path of its server's key file as text, without the
    key: other programs print their environment."""
    given = asdict(options)
    del given["timed"]
    return json.dumps({"options": given, "server": server})


def from_environment(text: str) -> tuple[TorchOptions, str]:
    """Return the arguments that :func:`to_environment` was called with."""
    given = json.loads(text)
    options = given["options"]
    options["settings"] = tuple(options["settings"])
    return TorchOptions(**options), given["server"]
