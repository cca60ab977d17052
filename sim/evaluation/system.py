"""A system of the evaluation: its name, parts and options, and how to build it.

To add a system, add an object of one of these classes, or of a new subclass, to the registry
:data:`sim.evaluation.systems.REGISTRY`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from host.model import Model
from host.systems import Devices, HostTuning, fixed_of
from sim.evaluation.built import Built
from sim.evaluation.fields import Fields, NicOptions, Options
from sim.evaluation.gradient_path import with_updates
from sim.evaluation.nic import NicPart, nic_part
from sim.evaluation.nic_options import Nics
from sim.evaluation.search import Search
from sim.evaluation.site import Site

__all__ = ["INTERACTION_VECTORS", "PARTS", "Evaluated", "System", "nics_interact"]

Evaluated = TypeVar("Evaluated", bound=Fields)
"""A point; a changed point keeps its class."""

INTERACTION_VECTORS = 64
"""Vectors of a NIC's interaction at most, see :class:`rtl.config.NicConfig`."""

PARTS = ("lc", "rc", "sc")
"""Functions of a SmartNIC besides transport: local cache, remote cache, SmartNIC computation."""


def nics_interact(model: Model) -> bool:
    """Return whether NICs can compute a model's interaction."""
    return not model.mixed and model.tables + 1 <= INTERACTION_VECTORS


@dataclass(frozen=True)
class System(ABC):
    """A system.

    Members
    -------
    name: canonical name. label: display name.
    parts: of `PARTS`. Training omits the remote cache, because its rows become stale (paper,
        section 4.2).
    graph: whether the graph algorithm forms its mini-batches unless a point says otherwise.
    settings: ``field=value`` of its NICs.
    options: class of its options. tuning: class of its searched options, or None.
    in_rtl: whether its NICs can run as RTL.
    chooses_nics: whether its NICs depend on options that it chooses.
    in_graphs: whether a graph may contain several mini-batches. least_nodes: least nodes of its
        cluster. of_endpoints: whether it may have several GPUs per node.
    program_settings: settings of its NICs in a PyTorch program, which computes the interaction.
    """

    name: str
    label: str
    parts: frozenset[str] = frozenset()
    graph: bool = False
    settings: tuple[str, ...] = ()

    options: ClassVar[type[Options]] = Options
    tuning: ClassVar[type[HostTuning] | None] = None
    in_rtl: ClassVar[bool] = False
    chooses_nics: ClassVar[bool] = False
    in_graphs: ClassVar[bool] = True
    least_nodes: ClassVar[int] = 1
    of_endpoints: ClassVar[bool] = True
    program_settings: ClassVar[tuple[str, ...]] = ()

    @property
    def has_nics(self) -> bool:
        """Whether it has NICs."""
        return issubclass(self.options, NicOptions)

    def parts_in(self, workload: str) -> frozenset[str]:
        """Return its parts in a workload."""
        return self.parts - {"rc"} if workload == "training" else self.parts

    def check(self, point: Fields) -> None:
        """Raise ``ValueError`` for unknown or conflicting options of a point."""
        if self.tuning is not None:
            fixed_of(self.tuning, point.system.fixed)
        elif point.system.fixed:
            raise ValueError(f"fixed must be empty for {self.name}, which has no options, "
                             f"not {point.system.fixed[0]!r}")

    def wires(self, point: Fields) -> tuple[str, ...]:
        """Return the formats of a value between nodes that a point allows it."""
        return ("float32",)

    def apart(self, point: Evaluated) -> list[Evaluated]:
        """Return the points, in place of ``point``, for which the options are searched apart. The
        fastest counts, so that a further point cannot make the result worse."""
        return [point]

    def why_not(self, site: Site) -> str | None:
        """Return the reason if the system cannot be built, None if it can."""
        cluster = site.point.cluster
        if cluster.gpus > 1 and not self.of_endpoints:
            return f"nodes must have 1 GPU for {self.name}, not {cluster.gpus}"
        if self.has_nics and site.training and cluster.gpus_per_nic > 1:
            return (f"nics must be {cluster.gpus} per node, one for each GPU, where NICs train, "
                    f"not {cluster.nics}")
        return None

    def why_not_placed(self, site: Site) -> str | None:
        """Return :meth:`why_not`, or the reason why the site's placement excludes the options that
        the point fixes."""
        return self.why_not(site)

    def without_interaction(self) -> dict[str, Any]:
        """Return the system and options with which GPUs compute the interaction."""
        return {"system": self.name}

    def for_model(self, model: Model, workload: str) -> dict[str, Any]:
        """Return the system and options that serve a model: GPUs compute an interaction of more
        vectors than `INTERACTION_VECTORS`, or of tables that differ."""
        if workload == "inference" and not nics_interact(model):
            return self.without_interaction()
        return {"system": self.name}

    def nics(self, point: Fields) -> Nics:
        """Return the NICs of a point."""
        return Nics(self.parts_in(point.workload.workload), settings=self.settings)

    @abstractmethod
    def search(self, site: Site, nic: NicPart | None, all_reduce: bool = True) -> Search:
        """Return the search for the best options with the given NICs, None for a system without
        NICs."""

    def at(self, site: Site, all_reduce: bool = True,
           near: Built | None = None) -> tuple[Built, NicPart | None]:
        """Return a point's system with its best options, and its NICs, None for a system without
        NICs. In training the NIC times include the gradient path. ``near``: the system under
        another placement, at whose options a long search begins."""
        nic = nic_part(site.point, self.nics(site.point), site.nic_trace, site.devices,
                       site.runs) if self.has_nics else None
        nic = self._updating(site, nic)
        return self.search(site, nic, all_reduce).best(), nic

    def reaches(self, site: Site, us: float) -> bool:
        """Return False if the interval is certainly at least ``us``, in less time than :meth:`at`
        takes."""
        return True

    def without_all_reduce(self, site: Site, nic: NicPart | None) -> Built:
        """Return the system without the all-reduce of the MLPs' gradients; ``nic``: result of
        :meth:`at`."""
        return self.search(site, nic, all_reduce=False).best()

    def as_seen(self, point: Fields, devices: Devices) -> tuple[Fields, Nics, Devices]:
        """Return a point, NICs and devices as a run of the point's NICs sees them."""
        return point, self.nics(point), devices

    def _updating(self, site: Site, nic: NicPart | None) -> NicPart | None:
        if nic is None or not site.training:
            return nic
        return with_updates(site.point, self.nics(site.point), site.trace, site.devices, site.work,
                            nic)
