"""The measured items, and their execution in sequence within a time budget."""

from collections.abc import Callable, Iterable, Iterator
from time import perf_counter

from host.calibrate.gpu.device import Device
from host.calibrate.gpu.items.en import en
from host.calibrate.gpu.items.gather import gather
from host.calibrate.gpu.items.launch import branches, graph, launch
from host.calibrate.gpu.items.rates import machine, operators, rates
from host.calibrate.gpu.items.resident import resident
from host.calibrate.gpu.items.words import held, release
from host.calibrate.reading import Absent, Book, Missing, Reading

__all__ = ["ITEMS", "Item", "run", "wanted"]

Item = Callable[[Device], Iterator[Reading | Absent]]

ITEMS: dict[str, Item] = {
    "device": machine, "rates": rates, "operators": operators, "launch": launch, "graph": graph,
    "branches": branches, "gather": gather, "release": release, "resident": resident,
    "held": held, "en": en}
"""Items in the order of measurement; the names of readings begin with the item's name.

Items that wait inside the GPU come last, because an error in them may end the CUDA context.
"""


def wanted(only: str | None) -> list[str]:
    """Return the item names in a list such as ``launch,graph``; None means all items.

    Raises ``ValueError`` for an unknown name.
    """
    if only is None:
        return list(ITEMS)
    names = [name.strip() for name in only.split(",") if name.strip()]
    for name in names or [only]:
        if name not in ITEMS:
            raise ValueError(f"only must be one of {', '.join(ITEMS)}, not {name!r}")
    return [name for name in ITEMS if name in names]


def run(device: Device, names: Iterable[str], book: Book, budget: float = float("inf"),
        keep: Callable[[], object] = lambda: None,
        progress: Callable[[str], object] = lambda line: None,
        clock: Callable[[], float] = perf_counter) -> None:
    """Measure the items ``names`` into ``book``, replacing earlier entries of these items.

    An item that fails is recorded as missing with the reason; its earlier readings stay, and the
    next item starts.

    budget: seconds after which no reading starts.
    keep: called after each item, and if the run is interrupted.
    progress: called with each reading's name.
    """
    end = clock() + budget
    for name in names:
        book.forget(name)
        try:
            _measure(device, name, book, end, progress, clock)
        except Missing as missing:
            book.add(Absent(name, str(missing)))
        except Exception as error:  # anything that a device, driver or version does not support
            book.add(Absent(name, f"{type(error).__name__}: {_line(error)}"))
        finally:
            keep()


def _measure(device: Device, name: str, book: Book, end: float, progress: Callable[[str], object],
             clock: Callable[[], float]) -> None:
    progress(name)
    device.warm_up()
    steps = ITEMS[name](device)
    try:
        while clock() < end:
            try:
                found = next(steps)
            except StopIteration:
                return
            book.add(found)
            progress(found.name)
        raise Missing("the time budget is used up")
    finally:
        steps.close()  # type: ignore[attr-defined]


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or "no reason was given"
