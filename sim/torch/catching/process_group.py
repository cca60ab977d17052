"""The process group ``embernic``: what the processes of a PyTorch program say to each other.

``torch.distributed.init_process_group("embernic")``, or ``--dist-backend embernic`` where a script
has that option, makes it once :func:`register` was called. Each rank is a node.
"""

from collections.abc import Callable
from datetime import timedelta
from functools import cache, wraps
from typing import Any, NamedTuple

import torch
from torch import distributed

__all__ = ["BETWEEN_TWO", "NAME", "OF_ALL", "Collective", "EmberNicGroup", "begin", "collectives",
           "exchanged", "note_exchange", "register"]

NAME = "embernic"

_GIVEN = {
    "allreduce": 0, "allreduce_coalesced": 0, "broadcast": 0, "reduce": 0, "send": 0,
    "allgather": 1, "_allgather_base": 1, "allgather_coalesced": 1,
    "allgather_into_tensor_coalesced": 1, "gather": 1, "scatter": 1, "reduce_scatter": 1,
    "_reduce_scatter_base": 1, "reduce_scatter_tensor_coalesced": 1, "alltoall": 1,
    "alltoall_base": 1, "recv": None, "recv_anysource": None, "barrier": None,
    "monitored_barrier": None}
"""The collectives of Gloo, and of each the argument with what this process gives, if any."""
_ALSO = {
    "all_gather_single": "_allgather_base", "reduce_scatter_single": "_reduce_scatter_base",
    "all_to_all_single": "alltoall_base",
    "all_gather_single_coalesced": "allgather_into_tensor_coalesced",
    "reduce_scatter_single_coalesced": "reduce_scatter_tensor_coalesced"}
"""Names of some of them since PyTorch 2.13."""
BETWEEN_TWO = frozenset(("send", "recv", "recv_anysource"))
"""Those of two processes, for which the others do not wait."""
OF_ALL = frozenset(("alltoall", "alltoall_base", "scatter", "reduce_scatter",
                     "_reduce_scatter_base"))
"""Collectives in which a process gives others parts that differ: so vectors travel that each holds
of some tables, or some rows."""


class Collective(NamedTuple):
    """A collective of this process. ``bytes`` that it gives; ``to``: of an exchange of all with
    all, those for each process."""

    name: str
    bytes: int
    to: tuple[int, ...] = ()


class EmberNicGroup(distributed.ProcessGroup):
    """A group of processes that talk over Gloo, and a record of what they exchange.

    The NICs carry the exchanges of embedding vectors and gradients, whose times are those of the
    simulation; what the program itself gets comes over Gloo, unchanged.

    Parameters: ``store``, ``rank``, ``size``, ``timeout``, as a backend of ``torch.distributed``
    gets them.

    Members: ``record``, every :class:`Collective` so far.
    """

    made: list["EmberNicGroup"] = []
    """Groups of this process, in the order in which they were made."""
    met: list[Callable[["EmberNicGroup", Any], None]] = []
    """Called with each new group and its store."""
    came: list[Callable[["EmberNicGroup", str], None]] = []
    """Called before each collective with its group and its name."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta):
        super().__init__(rank, size)
        self._gloo = distributed.ProcessGroupGloo(store, rank, size, timeout)
        self._name, self._description = NAME, ""
        self.record: list[Collective] = []
        self.made.append(self)
        for call in self.met:
            call(self, store)

    # ``DeviceMesh`` and the functional collectives ask for a name.

    def getBackendName(self) -> str:
        return NAME

    def setGroupName(self, name: str) -> None:
        self._name = name

    def getGroupName(self) -> str:
        return self._name

    def setGroupDesc(self, description: str) -> None:
        self._description = description

    def getGroupDesc(self) -> str:
        return self._description

    @property
    def group_name(self) -> str:
        return self._name

    @property
    def group_desc(self) -> str:
        return self._description

    def note(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Record a collective."""
        place = _GIVEN[name]
        given = () if place is None or len(arguments) <= place else _tensors(arguments[place])
        sizes = [each.numel() * each.element_size() for each in given]
        to: tuple[int, ...] = ()
        if name == "alltoall":
            to = tuple(sizes)
        elif name == "alltoall_base":
            splits = arguments[3] if len(arguments) > 3 else ()
            rows = sum(splits) if splits else self.size()
            each = sum(sizes) // rows if rows else 0
            to = tuple(each * count for count in (splits or [1] * self.size()))
        self.record.append(Collective(name, sum(sizes), to))
        for call in self.came:
            call(self, name)
        if name in OF_ALL:
            note_exchange(given)


def _tensors(given: Any) -> list[torch.Tensor]:
    """Return the tensors of an argument: one, a list, or lists of lists."""
    if isinstance(given, torch.Tensor):
        return [given]
    return [tensor for each in given for tensor in _tensors(each)]


def _passed_on(name: str) -> Callable[..., Any]:
    """Return the collective ``name`` of a group: recorded, and done by Gloo."""

    @wraps(getattr(distributed.ProcessGroupGloo, name))
    def collective(self: EmberNicGroup, *arguments: Any, **options: Any) -> Any:
        self.note(name, arguments)
        return getattr(self._gloo, name)(*arguments, **options)

    return collective


for _name in (*_GIVEN, *_ALSO):
    if hasattr(distributed.ProcessGroupGloo, _ALSO.get(_name, _name)):
        setattr(EmberNicGroup, _name, _passed_on(_ALSO.get(_name, _name)))


def collectives() -> list[dict]:
    """Return the collectives of this process by name: how many there were, and the bytes that it
    gave."""
    sums: dict[str, list[int]] = {}
    for group in EmberNicGroup.made:
        for each in group.record:
            own = sums.setdefault(each.name, [0, 0])
            own[0] += 1
            own[1] += each.bytes
    return [{"name": name, "count": count, "bytes": size}
            for name, (count, size) in sums.items()]


_exchanged = [0]


def note_exchange(given: Any) -> None:
    """Take note that this process gives others tensors in an exchange of all with all."""
    _exchanged[0] += sum(each.numel() * each.element_size() for each in _tensors(given))


def exchanged() -> int:
    """Return the bytes that this process has given others so far in exchanges of all with all."""
    return _exchanged[0]


def begin() -> None:
    """Let ``torch.distributed`` know the backend, and forget what was recorded before."""
    register()
    for group in EmberNicGroup.made:
        group.record.clear()


@cache
def register() -> None:
    """Let ``torch.distributed`` know the backend ``embernic``, on the CPU, where PyTorch was built
    with Gloo."""
    if distributed.is_available() and distributed.is_gloo_available():
        distributed.Backend.register_backend(NAME, EmberNicGroup, devices=["cpu"])
