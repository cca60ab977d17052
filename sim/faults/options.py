"""Options of the command ``faults``."""

from collections.abc import Callable
from dataclasses import dataclass

from gen.base.option import REQUIRED, AnyPath, option

__all__ = ["FaultsOptions"]


@dataclass(frozen=True, kw_only=True)
class FaultsOptions:
    """Options of the command ``faults``, and arguments of :func:`sim.api.faults`."""

    output: AnyPath = option(
        REQUIRED, "Folder of faults.json and faults.png. Finished cells are kept: the same command "
        "resumes after them.")
    short: bool = option(False, "Only cells that take seconds.")
    jobs: int | None = option(None, "Cells measured at once.", shown="processors")
    progress: Callable[[int, int, float], None] | None = option(
        None, "Called with the cells done, the number of cells, and the fraction of the work done.")
