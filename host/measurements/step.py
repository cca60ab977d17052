"""Kernels and collectives of a published training step on eight GPUs, as data.

``v100_step_kernels.csv`` has a line per operator, kernel, shapes and rows, with the count and the
total time on each rank. ``v100_step_collectives.csv`` has a line per collective, with the bytes
that a rank sends to each other rank and the duration on each rank, including waits.
"""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from host.measurements.kineto import Collective, Kernel

__all__ = ["COLLECTIVES", "KERNELS", "StepCollective", "StepKernel", "step_collectives",
           "step_kernels", "write_collectives", "write_kernels"]

KERNELS, COLLECTIVES = "v100_step_kernels.csv", "v100_step_collectives.csv"


@dataclass(frozen=True)
class StepKernel:
    """Kernels of the published step, with the members of :class:`host.measurements.kineto.Kernel`.

    calls, us: number and total microseconds on each rank.
    """

    operator: str
    name: str
    shapes: str
    rows: int
    calls: tuple[int, ...]
    us: tuple[float, ...]

    @property
    def computes(self) -> bool:
        """Whether it is a kernel that computes, not a copy or a memset."""
        return not self.name.startswith(("Memcpy", "Memset"))

    @property
    def tensors(self) -> tuple[tuple[int, ...], ...]:
        """The shapes as numbers."""
        return tuple(tuple(map(int, shape.split("x"))) for shape in self.shapes.split())


@dataclass(frozen=True)
class StepCollective:
    """A collective of the published step, with the members of
    :class:`host.measurements.kineto.Collective`.

    us: microseconds on each rank.
    """

    kind: str
    sent: tuple[int, ...]
    us: tuple[float, ...]

    @property
    def last_us(self) -> float:
        """Duration on the last rank to arrive, which does not wait."""
        return min(self.us)


def write_kernels(path: Path, ranks: Sequence[Sequence[Kernel]]) -> None:
    """Write the kernels of each rank to ``path``, identical kernels in a single line."""
    table: dict[tuple, list[list[float]]] = {}
    for rank, found in enumerate(ranks):
        for kernel in found:
            line = table.setdefault((kernel.operator, kernel.name, kernel.shapes, kernel.rows),
                                    [[0, 0.0] for _ in ranks])
            line[rank][0] += 1
            line[rank][1] += kernel.us
    _write(path, ("operator", "kernel", "shapes", "rows"), len(ranks),
           ((*key, *(count for count, _ in line), *(us for _, us in line))
            for key, line in table.items()), ("calls", "us"))


def write_collectives(path: Path, ranks: Sequence[Sequence[Collective]]) -> None:
    """Write the collectives of each rank to ``path``. Raises ``ValueError`` if ranks differ."""
    sizes = [[(each.kind, each.sent) for each in rank] for rank in ranks]
    if any(other != sizes[0] for other in sizes):
        raise ValueError("ranks must have the same collectives in the same order")
    _write(path, ("kind", "sent"), len(ranks),
           ((kind, " ".join(map(str, sent)), *(rank[number].us for rank in ranks))
            for number, (kind, sent) in enumerate(sizes[0])), ("us",))


@cache
def step_kernels() -> tuple[StepKernel, ...]:
    """Return the kernels of the published step."""
    return tuple(
        StepKernel(line["operator"], line["kernel"], line["shapes"], int(line["rows"]),
                   tuple(map(int, _of_ranks(line, "calls"))),
                   tuple(map(float, _of_ranks(line, "us"))))
        for line in _lines(KERNELS))


@cache
def step_collectives() -> tuple[StepCollective, ...]:
    """Return the collectives of the published step."""
    return tuple(StepCollective(line["kind"], tuple(map(int, line["sent"].split())),
                                tuple(map(float, _of_ranks(line, "us"))))
                 for line in _lines(COLLECTIVES))


def _of_ranks(line: dict[str, str], name: str) -> list[str]:
    return [value for key, value in line.items() if key.startswith(f"{name}_")]


def _lines(name: str) -> list[dict[str, str]]:
    text = (files("host") / "measurements" / name).read_text()
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


def _write(path: Path, names: Sequence[str], ranks: int, lines: Iterable[tuple],
           each: Sequence[str]) -> None:
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*names, *(f"{name}_{rank}" for name in each for rank in range(ranks))])
        writer.writerows([f"{value:g}" if isinstance(value, float) else value for value in line]
                         for line in lines)
