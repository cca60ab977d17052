"""The faults of a run, from text, from a file, or from the JSON of an earlier run."""

import json
from dataclasses import dataclass

from host.errors import InputError, shown
from host.reading import read_whole
from host.toml.schema import read_toml
from sim.job import faults, frame_faults, restarts
from sim.job.faults import Silence, parse_silence
from sim.job.frame_faults import FaultKind, FrameFault, parse_frame_faults
from sim.job.restarts import NicRestart, parse_restart

__all__ = ["FaultPlan"]

_KINDS = tuple(kind.name.lower() for kind in FaultKind)
_FILES = (".json", ".toml")
_MOST_BYTES = 1 << 28
"""Of the JSON of a run."""


@dataclass(frozen=True)
class FaultFile:
    """A TOML file of faults: each text of ``faults`` as on the command line; ``seed`` of draws."""

    faults: tuple[str, ...]
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.seed is not None and not 0 <= self.seed < 1 << 64:
            raise ValueError(f"seed must be between 0 and 2^64 - 1, not {self.seed!r}")


@dataclass(frozen=True)
class FaultPlan:
    """The faults of a run.

    Members
    -------
    given: text of each fault.
    seed: seed of random draws.
    silences: silent parts of nodes.
    frames: faults of frames between NICs.
    restarts: restarts of NICs, sorted by start.
    """

    given: tuple[str, ...] = ()
    seed: int = 0
    silences: tuple[Silence, ...] = ()
    frames: tuple[FrameFault, ...] = ()
    restarts: tuple[NicRestart, ...] = ()

    @classmethod
    def of(cls, given: str | None, nodes: int, seed: int = 0) -> "FaultPlan":
        """Return the faults in ``given``: entries separated by commas, or a file.

        An entry is one of :mod:`sim.job.faults`, :mod:`sim.job.frame_faults` or
        :mod:`sim.job.restarts`, or ``seed=N``, which replaces ``seed``. A file is TOML with
        ``faults``, a list of entries, and an optional ``seed``; or the JSON of a run, to repeat its
        faults and seed.

        Raises ``ValueError`` (:class:`host.errors.InputError` for a file) or ``TypeError``.
        """
        if given is None:
            return cls(seed=seed)
        if not given.endswith(_FILES):
            return cls._parsed([entry.strip() for entry in given.split(",")], nodes, seed)
        if given.endswith(".toml"):
            read = read_toml(given, FaultFile, check=lambda file: [
                _entry(text, nodes, f"faults[{place}]: ")
                for place, text in enumerate(file.faults)])
        else:
            read = _repeated(given)
        try:
            return cls._parsed(read.faults, nodes, seed if read.seed is None else read.seed)
        except (TypeError, ValueError) as error:
            raise InputError(given, 0, 0, str(error)) from None

    @classmethod
    def _parsed(cls, entries: "tuple[str, ...] | list[str]", nodes: int, seed: int) -> "FaultPlan":
        kept, silences, frames, back = [], [], [], []
        for text in entries:
            found = _entry(text, nodes)
            if isinstance(found, int):
                seed = found
                continue
            kept.append(text)
            if isinstance(found, Silence):
                silences.append(found)
            elif isinstance(found, NicRestart):
                back.append(found)
            else:
                frames += found
        return cls(tuple(kept), seed, tuple(silences), tuple(frames),
                   tuple(sorted(back, key=lambda restart: restart.start)))


def _entry(text: str, nodes: int,
           where: str = "") -> int | Silence | NicRestart | tuple[FrameFault, ...]:
    """Return the seed or fault of an entry; the message of an error begins with ``where``."""
    name, equals, value = text.partition("=")
    try:
        if equals and name == "seed":
            if not (value.isascii() and value.isdigit() and int(value) < 1 << 64):
                raise ValueError(f"seed of faults must be between 0 and 2^64 - 1, not {value!r}")
            return int(value)
        if equals and name.partition("-")[0] in _KINDS:
            return parse_frame_faults(text, nodes)
        if equals and name.startswith("silent-"):
            return parse_silence(text, nodes)
        if equals and name == "restart":
            return parse_restart(text, nodes)
        raise ValueError(f"faults must be {faults.FORM}; {frame_faults.FORM}, KIND being one of "
                         f"{', '.join(_KINDS)}; {restarts.FORM}; or a file {' or '.join(_FILES)}, "
                         f"not {text!r}")
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where}{error}") from None


def _repeated(path: str) -> FaultFile:
    """Return the faults in the JSON of a run."""
    try:
        told = json.loads(read_whole(path, _MOST_BYTES).decode())
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(path, 0, 0, f"not JSON: {error}") from None
    told = told.get("faults") if isinstance(told, dict) else None
    given, seed = (told.get("given"), told.get("seed")) if isinstance(told, dict) else (None, None)
    if not (isinstance(given, list) and all(isinstance(text, str) for text in given)):
        raise InputError(path, 0, 0, f"faults.given must be a list of strings, as in the JSON of a "
                                     f"run with faults, not {shown(given)}")
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 1 << 64:
        raise InputError(path, 0, 0, f"faults.seed must be between 0 and 2^64 - 1, "
                                     f"not {shown(seed)}")
    return FaultFile(tuple(given), seed)
