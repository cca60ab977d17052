"""Store of measured points on disk. A point's file name is a hash of everything it depends on.

The hash covers the point's fields, the contents of its profiles and data files, the versions of
packages, and the sources that the measuring function and the point's class import. A result of
other code is therefore never used and need not be deleted. Each file states the code that measured
it (``made_by``).
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from gen.base.cache import digest
from gen.base.files import write_whole
from host.data.contents import check_contents, contents, know_contents, known_contents
from host.model import model_files
from host.reading import read_regular, read_whole
from host.toml.schema import MOST_BYTES
from sim.files.identity import sources_hash, sources_of, versions

__all__ = ["Outcome", "Results", "Store", "data_of", "plain"]

MOST_POINT = 1 << 28
"""Most bytes of a point's file."""


def plain(value: Any) -> Any:
    """Return ``value`` as JSON reads it back, so that measured and stored points are bit-identical.
    ``ValueError`` for NaN and infinities."""
    return json.loads(json.dumps(value, allow_nan=False))


def _checksum(metrics: Any) -> str:
    """Return the SHA-256 of metrics, independent of their formatting in the file."""
    return sha256(json.dumps(plain(metrics), sort_keys=True).encode()).hexdigest()


class Store:
    """Finished points in a folder.

    Parameters
    ----------
    folder: created when the first point is stored.
    version: identifies the measuring code, see :func:`sim.files.identity.sources_of`; by default a
        hash of all sources of EmberNIC.

    Members: ``folder``, ``version``.
    """

    def __init__(self, folder: str | Path, version: str | None = None):
        self.folder = Path(folder)
        self.version = version or sources_hash()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Store) and (self.folder, self.version) == (
            other.folder, other.version)

    def __hash__(self) -> int:
        return hash((self.folder, self.version))

    def __getstate__(self) -> dict[str, Any]:
        # Includes checksums, so that other processes need not read large files again.
        return {**self.__dict__, "contents": known_contents()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        know_contents(state.pop("contents"))
        self.__dict__.update(state)

    def key(self, point: Any) -> str:
        """Return the name of a point, a dataclass of plain values.

        :class:`host.errors.InputError` if a data file is unreadable.
        """
        fields = asdict(point)
        files = [*contents(data_of(point))]
        for name, value in sorted(fields.items()):
            if isinstance(value, str) and value.endswith(".toml"):
                files += [name, read_whole(value, MOST_BYTES).decode()]
        return digest([self.version, sources_of(type(point)), json.dumps(fields, sort_keys=True),
                       *files])

    def get(self, point: Any) -> dict | None:
        """Return the metrics of ``point``, or None if they are not stored.

        A damaged file counts as missing; the metrics have a checksum.

        :class:`host.errors.InputError` for a FIFO, a device, a folder, and a file above
        `MOST_POINT`.
        """
        try:
            text = read_regular(self._path(point), MOST_POINT)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            found = plain(json.loads(text))
        except (ValueError, RecursionError):
            return None
        if not isinstance(found, dict) or found.get("point") != plain(asdict(point)):
            return None
        metrics = found.get("metrics")
        return metrics if found.get("sha256") == _checksum(metrics) else None

    def put(self, point: Any, metrics: Mapping[str, Any]) -> None:
        """Store metrics. The file is complete on disk when this returns."""
        path = self._path(point)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(
            {"point": asdict(point), "metrics": metrics, "sha256": _checksum(metrics),
             "made_by": {**versions(), "sources": sources_hash()}}, indent=1,
            allow_nan=False) + "\n")

    def once(self, point: Any, make: Callable[[], dict], wait: bool = True) -> dict | None:
        """Return the metrics of ``point``, or store and return the result of ``make()``.

        A lock prevents two processes from measuring the same point: the second waits, or returns
        None if ``wait`` is false. If the folder cannot be created, such as on a worker without the
        disk, the result is not stored.
        """
        kept = self.get(point)
        if kept is not None:
            return kept
        path = self._path(point)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            return plain(make())
        data = data_of(point)
        before = contents(data)
        try:
            with FileLock(path.with_suffix(".lock"), timeout=-1 if wait else 0):
                kept = self.get(point)
                if kept is None:
                    kept = plain(make())
                    check_contents(data, before)
                    self.put(point, kept)
                return kept
        except Timeout:
            return None

    def _path(self, point: Any) -> Path:
        key = self.key(point)
        return self.folder / key[:2] / f"{key[2:]}.json"


def data_of(point: Any) -> tuple[str, ...]:
    """Return the data files and the model file of a point or of its workload; empty without such
    fields."""
    workload = getattr(point, "workload", point)
    return (*getattr(workload, "data", ()), *model_files(getattr(workload, "dataset", "kaggle")))


@dataclass(frozen=True)
class Outcome:
    """The outcome of a point: its ``metrics``, or one line that describes the ``error``."""

    point: Any
    metrics: dict | None
    error: str | None = None


class Results(Mapping[Any, Outcome]):
    """Outcomes by point, in the order of the request; ``resumed`` of them were on disk."""

    def __init__(self, outcomes: Mapping[Any, Outcome], resumed: int = 0):
        self._outcomes = dict(outcomes)
        self.resumed = resumed

    def __getitem__(self, point: Any) -> Outcome:
        return self._outcomes[point]

    def __iter__(self):
        return iter(self._outcomes)

    def __len__(self) -> int:
        return len(self._outcomes)

    @property
    def failed(self) -> list[Outcome]:
        """Outcomes without metrics."""
        return [outcome for outcome in self._outcomes.values() if outcome.metrics is None]

    def value(self, point: Any, metric: str) -> float | None:
        """Return a metric, None if it is missing; ``latency_us.p99`` names a nested metric."""
        outcome = self._outcomes.get(point)
        found: Any = outcome.metrics if outcome else None
        for name in metric.split("."):
            found = found.get(name) if isinstance(found, dict) else None
        return found
