"""Options of a step, common to all systems, and the options that a search varies."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import product
from typing import Any, TypeVar

from gen.base.numbers import integer
from host.bounds import check_least
from host.dlrm.codecs import CODECS
from host.systems.devices import Devices

__all__ = ["BAG_PACES", "COPIED_ROWS", "KEY_BYTES", "PACES", "POOLS", "THREADS", "UPDATES", "WIRES",
           "HostTuning", "NicTuning", "StepOptions", "Variants", "check_places", "every",
           "fixed_of", "host_variants", "named_of", "near", "open_variants", "pace_in_words",
           "possible_update", "start_of", "wire_in_words", "wires_to"]

_T = TypeVar("_T", bound="HostTuning")

COPIED_ROWS = (0, 100, 1_000, 10_000, 100_000, 1_000_000)
"""Limits on the rows of tables that are copied to every node; 0 copies no table."""

KEY_BYTES = (8, 4)
"""Bytes of an index or a bag offset: int64, as in frameworks, or int32."""

POOLS = ("requester", "owner", "auto")
"""Nodes that pool the bags of a table in a system with NICs; ``owner`` applies to every table that
can pool at its owner, ``auto`` to each table with fewer bytes on the network."""

UPDATES = ("gpu", "nic")
"""Places that sum the gradients of tables that pool at their owner, and update their rows: the GPU,
or the NIC, of the owner."""

THREADS = 2
"""Host threads of a system at most, with the thread of the NIC's driver."""

PACES = (1, 2, 4, 8, 16)
"""Least times from a launch of gathers to the next, microseconds, that a NIC's driver may choose
from. They do not depend on the machine: a machine with faster calls has the same choice."""

BAG_PACES = (32, 64, 128)
"""Further such times where tables pool at their owner: a bag that waits for a kernel holds a place
of its owner, of which there are more than misses of rows."""

WIRES = {name: CODECS[name].bits for name in ("float32", "float16", "int8")}
"""Bits of a value between nodes by format. bfloat16 takes as many bits as float16."""

Variants = tuple[Mapping[str, Any], ...]
"""Alternatives of a search: the values of one or more members, which change together."""


@dataclass(frozen=True)
class StepOptions:
    """Options of a step.

    Members
    -------
    training: whether the step trains (SGD).
    all_reduce: whether training sums the gradients of the MLPs over the nodes.
    buckets: whether the all-reduce of the top MLP overlaps the backward pass of the bottom MLP.
    nccl: whether GPUs all-reduce by NCCL even if the software profile has another library.
    """

    training: bool = False
    all_reduce: bool = True
    buckets: bool = False
    nccl: bool = False


@dataclass(frozen=True, kw_only=True)
class HostTuning:
    """Options that every system with GPUs has.

    Members
    -------
    threads: host threads that call operators and launch graphs; each mini-batch uses a free thread.
        The thread of a NIC's driver counts as one of `THREADS`.
    communicators: NCCL communicators per GPU; each runs its collectives in order.
    key_bytes: bytes of an index or a bag offset, one of `KEY_BYTES`.
    """

    threads: int = 1
    communicators: int = 1
    key_bytes: int = KEY_BYTES[0]

    def __post_init__(self) -> None:
        for name in ("threads", "communicators"):
            if not 1 <= getattr(self, name) <= 16:
                raise ValueError(f"{name} must be between 1 and 16, not {getattr(self, name)!r}")
        if self.key_bytes not in KEY_BYTES:
            raise ValueError(f"key_bytes must be {' or '.join(map(str, KEY_BYTES))}, "
                             f"not {self.key_bytes!r}")

    def possible(self, training: bool = False) -> bool:
        """Return whether the options are consistent and not equivalent to other options."""
        return True

    def devices(self, d: Devices) -> Devices:
        """Return ``d`` with the threads and communicators of these options."""
        return replace(d, threads=self.threads, communicators=self.communicators)

    def words(self) -> list[str]:
        """Return the active options as texts."""
        used = [name for name, value in vars(self).items() if value is True]
        used += [f"{self.threads} thread{'s' * (self.threads > 1)}"]
        used += [f"{self.communicators} communicators"] * (self.communicators > 1)
        return used + [f"keys of {8 * self.key_bytes} bits"] * (self.key_bytes < KEY_BYTES[0])

    def in_words(self) -> str:
        """Return the active options as text."""
        return ", ".join(self.words())


@dataclass(frozen=True, kw_only=True)
class NicTuning(HostTuning):
    """Options of the paper's systems with NICs.

    Members
    -------
    pool: node that pools the bags of a table, one of `POOLS`.
    update: place that updates the rows of tables that pool at their owner in training, one of
        `UPDATES`.
    jumbo: packets of up to 9,000 bytes, in place of 1,500. Inference only.
    pace_us: least microseconds from a launch of gathers by the NIC's driver to the next; fewer
        gathers leave more of the GPU to other kernels. 0 launches as soon as the driver's thread is
        free. Inference only.
    """

    pool: str = POOLS[0]
    update: str = UPDATES[0]
    jumbo: bool = False
    pace_us: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_places(self.pool, self.update)
        check_least(self, pace_us=0)

    def possible(self, training: bool = False) -> bool:
        """Return whether the options are consistent."""
        return not (training and (self.jumbo or self.pace_us > 0)) and possible_update(
            self.pool, self.update, training)

    def words(self) -> list[str]:
        """Return the active options as texts."""
        return [*super().words(), *pace_in_words(self.pace_us)]


def wires_to(shortest: str) -> tuple[str, ...]:
    """Return the formats in `WIRES` down to the ``shortest``."""
    return tuple(WIRES)[:tuple(WIRES).index(shortest) + 1]


def wire_in_words(wire: str) -> list[str]:
    """Return the words of a format of values between nodes, none for float32."""
    return [f"{wire} between nodes"] * (wire != "float32")


def pace_in_words(us: int) -> list[str]:
    """Return the words of a pace of ``us``, none for 0."""
    return [f"a launch of gathers every {us} us at most"] * (us > 0)


def check_places(pool: str, update: str) -> None:
    """Raise ``ValueError`` unless ``pool`` is one of `POOLS`, and ``update`` one of `UPDATES`."""
    for name, value, known in (("pool", pool, POOLS), ("update", update, UPDATES)):
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}, not {value!r}")


def possible_update(pool: str, update: str, training: bool) -> bool:
    """Return whether there are tables that pool at their owner to ``update``, or it is the default.
    """
    return update == UPDATES[0] or (training and pool != POOLS[0])


def named_of(option: HostTuning) -> tuple[str, ...]:
    """Return the ``name=value`` texts that fix every member of ``option``."""
    return tuple(f"{name}={str(value).lower() if isinstance(value, bool) else value}"
                 for name, value in vars(option).items())


def fixed_of(kind: type[HostTuning], texts: Sequence[str]) -> dict[str, Any]:
    """Return the members that ``name=value`` texts fix.

    kind: class of the options.

    Raises ``ValueError`` for an unknown name or a value of the wrong type.
    """
    known = {field.name: field.default for field in fields(kind)}
    found: dict[str, Any] = {}
    for option in texts:
        name, _, text = option.partition("=")
        if name not in known:
            raise ValueError(f"fixed must name one of {', '.join(known)}, not {name!r}")
        default = known[name]
        if isinstance(default, bool):
            if text not in ("true", "false"):
                raise ValueError(f"{name} must be true or false, not {text!r}")
            found[name] = text == "true"
        elif isinstance(default, int):
            try:
                found[name] = integer(text)
            except ValueError as error:
                raise ValueError(f"{name} must be an integer: {error}") from None
        else:
            found[name] = text
    kind(**found)  # checks the values
    return found


def host_variants(threads: int = THREADS, key_bytes: int = KEY_BYTES[0]) -> tuple[Variants, ...]:
    """Return the alternatives of a system whose host has ``threads`` threads for its calls."""
    return (tuple({"threads": count} for count in range(1, threads + 1)),
            ({"key_bytes": key_bytes},))


def open_variants(variants: Iterable[Variants], fixed: Mapping[str, Any]) -> tuple[Variants, ...]:
    """Return the alternatives that agree with the members that ``fixed`` sets."""
    return tuple(tuple(each for each in own if all(
        fixed.get(name, value) == value for name, value in each.items())) for own in variants)


def every(option: _T, variants: Sequence[Variants], training: bool = False) -> tuple[_T, ...]:
    """Return all consistent combinations of the alternatives, with the other members of ``option``.

    Raises ``ValueError`` if there are none.
    """
    found = (replace(option, **{name: value for own in chosen for name, value in own.items()})
             for chosen in product(*filter(None, variants)))
    found = tuple(each for each in found if each.possible(training))
    if not found:
        raise ValueError(f"fixed must leave consistent options in "
                         f"{'training' if training else 'inference'}, not {option.in_words()}")
    return found


def near(option: _T, variants: Sequence[Variants], changes: int) -> tuple[_T, ...]:
    """Return ``option``, and then the options that differ from it in at most ``changes`` of the
    alternatives."""
    return _near(option, tuple(tuple(tuple(values.items()) for values in own)
                               for own in variants), changes)


@lru_cache(maxsize=1024)
def _near(option: _T, variants: tuple[tuple[tuple[tuple[str, Any], ...], ...], ...],
          changes: int) -> tuple[_T, ...]:
    found = {option: None}
    for _ in range(changes):
        found |= {replace(each, **dict(values)): None
                  for each in list(found) for own in variants for values in own}
    return tuple(found)


def start_of(option: _T, variants: Sequence[Variants], training: bool = False) -> _T:
    """Return the consistent combination that differs from ``option`` in the fewest alternatives.

    Raises ``ValueError`` as :func:`every` does.
    """
    for own in variants:
        option = replace(option, **own[0]) if len(own) == 1 else option
    close = (each for changes in range(3) for each in near(option, variants, changes)
             if each.possible(training))
    return next(close, None) or every(option, variants, training)[0]
