"""The list of what is measured, and its run: one item after the other within a budget of time."""

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
"""The items, in the order in which they are measured. Names of readings begin with the item's. What
waits inside the GPU comes last: should it fail in a way that ends CUDA, the others are done."""


def wanted(only: str | None) -> list[str]:
    """Return the names of items that a list like ``launch,graph`` names; all for None.

    Raises ``ValueError`` for a name that no item has.
    """
    if only is None:
        return list(ITEMS)
    names = [name.strip() for name in only.split(",") if name.strip()]
    for name in names or [only]:
        if name not in ITEMS:
            raise ValueError(f"only must be of {', '.join(ITEMS)}, not {name!r}")
    return [name for name in ITEMS if name in names]


def run(device: Device, names: Iterable[str], book: Book, budget: float = float("inf"),
        keep: Callable[[], object] = lambda: None,
        progress: Callable[[str], object] = lambda line: None,
        clock: Callable[[], float] = perf_counter) -> None:
    """Measure the items ``names`` into ``book``, in place of what it holds of them.

    An item that fails is missing, with the reason, and the next one begins; what an item found
    before it failed stays. After ``budget`` seconds no reading begins. ``keep`` is called after
    each item, and when the run is interrupted. ``progress`` is called with each reading's name.
    """
    end = clock() + budget
    for name in names:
        book.forget(name)
        try:
            _measure(device, name, book, end, progress, clock)
        except Missing as missing:
            book.add(Absent(name, str(missing)))
        except Exception as error:  # whatever a device, its driver or a version does not support
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
        raise Missing("the time was up")
    finally:
        steps.close()  # type: ignore[attr-defined]


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or "no reason was given"
