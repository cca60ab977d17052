"""The process group ``embernic``, which records the collectives of a PyTorch program.

After :func:`register`, ``torch.distributed.init_process_group("embernic")`` creates the group.
Scripts with the option ``--dist-backend`` can name it there. Each rank is a node.
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
"""Collectives of Gloo. The value is the number of the argument that this process sends, if any."""
_ALSO = {
    "all_gather_single": "_allgather_base", "reduce_scatter_single": "_reduce_scatter_base",
    "all_to_all_single": "alltoall_base",
    "all_gather_single_coalesced": "allgather_into_tensor_coalesced",
    "reduce_scatter_single_coalesced": "reduce_scatter_tensor_coalesced"}
"""Names of some collectives since PyTorch 2.13."""
BETWEEN_TWO = frozenset(("send", "recv", "recv_anysource"))
"""Operations of two processes, which do not block the others."""
OF_ALL = frozenset(("alltoall", "alltoall_base", "scatter", "reduce_scatter",
                     "_reduce_scatter_base"))
"""Collectives in which a process sends different parts to different processes, as tables or rows
that are sharded require."""


class Collective(NamedTuple):
    """A collective of this process.

    name: name of the collective.
    bytes: bytes that this process sends.
    to: in an all-to-all exchange, the bytes for each process.
    """

    name: str
    bytes: int
    to: tuple[int, ...] = ()


class EmberNicGroup(distributed.ProcessGroup):
    """A process group that uses Gloo and records its collectives.

    In the simulation the NICs transport embedding vectors and gradients. The program itself gets
    its data over Gloo, unchanged.

    Parameters: ``store``, ``rank``, ``size``, ``timeout``, as for a backend of
    ``torch.distributed``.

    record: member; every :class:`Collective` so far.
    """

    made: list["EmberNicGroup"] = []
    """Groups of this process, in order of creation."""
    met: list[Callable[["EmberNicGroup", Any], None]] = []
    """Callbacks for each new group and its store."""
    came: list[Callable[["EmberNicGroup", str], None]] = []
    """Callbacks before each collective, with its group and its name."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta):
        super().__init__(rank, size)
        self._gloo = distributed.ProcessGroupGloo(store, rank, size, timeout)
        self._name, self._description = NAME, ""
        self.record: list[Collective] = []
        self.made.append(self)
        for call in self.met:
            call(self, store)

    # ``DeviceMesh`` and the functional collectives require a name.

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
    """Return the tensors of an argument: a tensor, a list, or nested lists."""
    if isinstance(given, torch.Tensor):
        return [given]
    return [tensor for each in given for tensor in _tensors(each)]


def _passed_on(name: str) -> Callable[..., Any]:
    """Return a method that records the collective ``name`` and calls Gloo's."""

    @wraps(getattr(distributed.ProcessGroupGloo, name))
    def collective(self: EmberNicGroup, *arguments: Any, **options: Any) -> Any:
        self.note(name, arguments)
        return getattr(self._gloo, name)(*arguments, **options)

    return collective


for _name in (*_GIVEN, *_ALSO):
    if hasattr(distributed.ProcessGroupGloo, _ALSO.get(_name, _name)):
        setattr(EmberNicGroup, _name, _passed_on(_ALSO.get(_name, _name)))


def collectives() -> list[dict]:
    """Return the number and the bytes of this process's collectives, by name."""
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
    """Count the bytes that this process sends in an all-to-all exchange."""
    _exchanged[0] += sum(each.numel() * each.element_size() for each in _tensors(given))


def exchanged() -> int:
    """Return the bytes that this process has sent in all-to-all exchanges."""
    return _exchanged[0]


def begin() -> None:
    """Register the backend, and clear earlier records."""
    register()
    for group in EmberNicGroup.made:
        group.record.clear()


@cache
def register() -> None:
    """Register the backend ``embernic`` for the CPU, if PyTorch includes Gloo."""
    if distributed.is_available() and distributed.is_gloo_available():
        distributed.Backend.register_backend(NAME, EmberNicGroup, devices=["cpu"])
