"""Options of a PyTorch program on NICs."""

import json
from dataclasses import asdict, dataclass, field, fields, replace

from gen.base.settings import overridden, setting_name
from host.bounds import check_known
from host.placement.deal import PLACEMENTS, check_placement, given_owners
from host.toml.profile import profile_names
from rtl.config import preset
from sim.evaluation.cluster import software_names
from sim.evaluation.systems import canonical, system_of
from sim.job.arguments import check_bounds
from sim.job.fit import preset_of, sizes_beyond
from sim.job.options import RunOptions
from sim.job.program import ProgramOptions
from sim.job.settings import apply_settings
from sim.torch.lookups.bags import DIMENSIONS
from sim.torch.systems import SYSTEMS, Setting

__all__ = ["TorchOptions", "from_environment", "to_environment"]

_NICS = {name: kind.program_settings for name, system in SYSTEMS.items()
         if (kind := system_of(canonical(system)[0])).has_nics}
"""Settings of each system with NICs. FS pools on the NIC; EN delivers each distinct vector of a
share once, and the hosts pool. Both leave the interaction to the program."""
_ALONE = 4
"""Default number of nodes for a program with a single process."""


@dataclass(frozen=True, kw_only=True)
class TorchOptions(ProgramOptions):
    """Checked options of a program.

    system: its label in `SYSTEMS`; given in any case.
    timed: setting in which its mini-batches are timed.

    Raises ``ValueError`` that names field, value and bound.
    """

    timed: Setting = field(init=False)

    def __post_init__(self) -> None:
        check_bounds(self)
        labels = {label.lower(): label for label in SYSTEMS}
        object.__setattr__(self, "system", self.system.lower())
        check_known(self, system=labels)
        object.__setattr__(self, "system", labels[self.system])
        check_known(self, software=software_names(), gpu=profile_names("gpu_"))
        check_placement(self.placement)
        if given_owners(self.placement) is not None:
            raise ValueError(f"placement of a PyTorch program must be one of "
                             f"{', '.join(PLACEMENTS)}, not {self.placement!r}")
        if self.fidelity == "rtl" and self.system not in _NICS:
            raise ValueError(f"system must be one of {', '.join(_NICS).lower()} with fidelity "
                             f"rtl, not {self.system!r}, which has no NIC")
        if self.optimizer_on == "nic" and self.system not in _NICS:
            raise ValueError(f"system must be one of {', '.join(_NICS).lower()} with optimizer_on "
                             f"nic, not {self.system!r}, which has no NIC")
        if self.repeats == "nic":
            raise ValueError("repeats of a PyTorch program must be one of send, neighbours, "
                             "indices, not 'nic': its tables do not pool at their owner")
        if self.repeats != "send" and self.optimizer_on == "nic":
            raise ValueError(f"repeats must be send with optimizer_on nic, not {self.repeats!r}")
        for each in self.set:
            name, _, value = each.partition("=")
            if name.strip() == "interaction":
                raise ValueError(f"interaction must be left to the systems, not set to "
                                 f"{value.strip()!r}: a system decides whether its NICs compute it")
        base, _ = apply_settings(preset(self.config or "kaggle"), list(self.set))
        if not 1 <= self.count <= base.nodes:
            raise ValueError(f"nodes must be between 1 and {base.nodes}, not {self.count!r}")
        object.__setattr__(self, "timed", Setting(
            self.count, self.placement, self.software, self.gpu, tuple(self.set), self.seed))

    @classmethod
    def of(cls, given: ProgramOptions) -> "TorchOptions":
        """Return the checked options."""
        return cls(**{each.name: getattr(given, each.name) for each in fields(ProgramOptions)})

    @property
    def count(self) -> int:
        """Nodes of the cluster."""
        return _ALONE if self.nodes is None else self.nodes

    @property
    def widest(self) -> int:
        """The most values of a vector: `DIMENSIONS`, or ``max_dimension`` if that is set for RTL.
        """
        own = [each for each in self.set if setting_name(each) == "max_dimension"]
        if self.fidelity != "rtl" or not own:
            return DIMENSIONS
        config, _ = apply_settings(preset(self.config or "kaggle"), own)
        return min(DIMENSIONS, config.max_dimension)

    def of_processes(self, size: int) -> "TorchOptions":
        """Return the options of a program with ``size`` processes, each of them a node.

        Raises ``ValueError`` if the options name a different number of nodes.
        """
        if self.nodes not in (None, size):
            raise ValueError(f"nodes must be {size}, the processes of the program, not "
                             f"{self.nodes!r}")
        return replace(self, nodes=size)

    def cluster(self, tables: int, dimension: int, slots: int,
                placement: str | None = None, pooled: bool = False) -> RunOptions:
        """Return the options of a cluster of NICs.

        tables: number of tables.
        dimension: padded dimension of the vectors.
        slots: most slots of a sample.
        placement: placement of the tables; None for the program's option.
        pooled: whether NICs pool, in place of the system's delivery.
        """
        name = self.config or preset_of(dimension)
        own = overridden(overridden(_NICS[self.system], ["deliver=pooled"] * pooled), self.set)
        if self.optimizer_on == "nic" and not any(
                setting_name(each) == "remote_cache" for each in own):
            own = ("remote_cache=false", *own)  # its copies would become stale
        base, _ = apply_settings(preset(name), list(own))
        return RunOptions.of(
            config=name, settings=(*sizes_beyond(base, {
                "tables": tables, "max_dimension": dimension, "hold_vectors": 2 * slots}), *own),
            nodes=self.count, placement=placement or self.placement, gpu=self.gpu, seed=self.seed,
            fidelity="rtl", engine=self.engine, threads=self.threads, in_flight=1,
            repeats=self.repeats)

    def to_json(self) -> dict:
        """Return the members as plain values."""
        return {name: getattr(self, name) for name in (
            "system", "placement", "fidelity", "optimizer_on", "repeats", "config", "software",
            "gpu", "engine", "threads", "seed")} | {"nodes": self.count, "set": list(self.set)}


def to_environment(options: TorchOptions, server: str) -> str:
    """Return a program's options and the path of its server's key file as text.

    The text does not contain the key, because other programs print their environment.
    """
    given = asdict(options)
    del given["timed"]
    return json.dumps({"options": given, "server": server})


def from_environment(text: str) -> tuple[TorchOptions, str]:
    """Return the options and the key file's path from a text of :func:`to_environment`."""
    given = json.loads(text)
    options = given["options"]
    options["set"] = tuple(options["set"])
    return TorchOptions(**options), given["server"]
