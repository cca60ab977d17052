"""Claims about training: C9 to C12, C14, C21, C22."""

from sim.experiments.claims.book import Book, mean
from sim.experiments.claims.verdict import HARDLY, Verdict, claim, less, steps_of, times
from sim.experiments.figures.fig26 import BATCH_FACTORS, batch_fields

__all__ = ["TRAINING"]

_WITHOUT = "without_all_reduce.samples_per_second"


def _without_all_reduce(book: Book, *systems: str) -> str:
    """Return the speedups without the MLPs' all-reduce, in words."""
    return "Without the MLPs' all-reduce: " + times(
        {system: mean(book.speedups(system, "training", metric=_WITHOUT)) for system in systems})


@claim("C9", "Training throughput: local cache 1.3x, SmartNIC computation 1.4x, graph algorithm "
             "1.1x.", "fig23", "fig25")
def techniques(book: Book) -> Verdict:
    claimed = {"lc": 1.3, "sc": 1.4, book.graph: 1.1}
    found = {system: mean(book.speedups(system, "training")) for system in claimed}
    known = {system: value for system, value in found.items() if value is not None}
    nic = mean(book.speedups("nic", "training"))
    alone = "" if nic is None else f"The NIC alone, of LC and SC too, brings {nic:.2f}x. "
    return Verdict(f"means: {times(found)}", None if len(known) < len(found) else all(
        round(value, 1) >= claimed[system] for system, value in known.items()),
        f"{alone}{_without_all_reduce(book, *claimed)}. {book.largest(book.base, 'training')}",
        found)


@claim("C10", "Training throughput rises with the size of the local cache.", "fig23", "fig24")
def local_cache(book: Book) -> Verdict:
    found, ways = {}, []
    for dataset in book.setting.datasets:
        values = [book.value("samples_per_second", dataset, "lc", "training", local_cache=share)
                  for share in book.setting.sizes(dataset)]
        way = steps_of(values)
        low, high = values[0], values[-1]
        found[dataset] = high / low if low and high else None
        ways.append(None if way is None else way[0] and high != low)
    return Verdict(f"largest over smallest cache: {times(found)}",
                   None if None in ways else all(ways), book.largest("lc", "training"), found)


@claim("C11", "The full system trains 1.5x (text; a maximum) or 1.6x (abstract) faster.", "fig25")
def full(book: Book) -> Verdict:
    found = book.speedups("fs", "training")
    known = [value for value in found.values() if value is not None]
    average, most = mean(found), max(known, default=None)
    agrees = None if average is None or most is None else (
        round(most, 1) >= 1.5 and round(average, 1) >= 1.6)
    return Verdict(f"mean {'n/a' if average is None else f'{average:.2f}x'}, most "
                   f"{'n/a' if most is None else f'{most:.2f}x'} ({times(found)})", agrees,
                   f"1.5x is judged on the maximum, 1.6x on the mean. "
                   f"{_without_all_reduce(book, 'fs')}. Left in the full system: "
                   f"{book.largest('fs', 'training')}", {"mean": average, "most": most, **found})


@claim("C12", "The speedup saturates as the training mini-batch grows.", "fig26")
def saturation(book: Book) -> Verdict:
    found, ends = {}, []
    for dataset in book.setting.datasets:
        values = []
        for factor in BATCH_FACTORS:
            fields = batch_fields(book.setting, dataset, factor)
            values.append(book.speedups("sc", "training", base_fields=fields, **fields)[dataset])
        found[dataset] = dict(zip(map(str, BATCH_FACTORS), values))
        known = [value for value in values if value is not None]
        ends.append(None if len(known) < len(values) else known[-1] / known[-2] - 1 <= HARDLY)
    text = "; ".join(f"{dataset} {times(values)}" for dataset, values in found.items())
    return Verdict(f"by multiples of the reference mini-batch: {text}",
                   None if None in ends else all(ends),
                   f"Saturated: the last doubling adds at most {HARDLY:.0%}.", found)


@claim("C14", "SmartNIC computation drives how training scales with nodes.", "fig15")
def scaling(book: Book) -> Verdict:
    low, high = min(book.setting.scale_nodes), max(book.setting.scale_nodes)
    found: dict[str, float | None] = {}
    for system in ("sc", "lc", "ga", book.base):
        found[system] = mean({
            dataset: None if not many or not one else many / one for (dataset, one), many in zip(
                book.values("samples_per_second", system, "training", nodes=low).items(),
                book.values("samples_per_second", system, "training", nodes=high).values())})
    known = {system: value for system, value in found.items() if value is not None}
    return Verdict(f"throughput, {low} to {high} nodes: {times(found)}",
                   None if len(known) < len(found) else
                   known["sc"] >= max(value for value in known.values()),
                   book.largest("sc", "training"), found)


@claim("C21", "The graph algorithm matters less in training than in inference.", "fig22", "fig25")
def graph(book: Book) -> Verdict:
    found = {workload: mean(book.speedups(book.graph, workload))
             for workload in ("inference", "training")}
    there = [value for value in found.values() if value is not None]
    return Verdict(times(found), None if len(there) < 2 else there[1] < there[0], "", found)


@claim("C22", "The local cache always holds the row that is to be updated.", "fig24")
def updates(book: Book) -> Verdict:
    found: dict[str, float | None] = {}
    for dataset in book.setting.datasets:
        for share in [share for share in book.setting.sizes(dataset) if share]:
            rows, misses = (book.value(f"updates.{what}", dataset, "lc", "training",
                                       local_cache=share) for what in ("rows", "misses"))
            found[f"{dataset} {share:.0%}"] = None if not rows or misses is None else misses / rows
    known = [value for value in found.values() if value is not None]
    there = len(known) == len(found) > 0
    missed = {name: value for name, value in found.items() if value}
    text = less(missed) if missed else "none at any size"
    return Verdict(f"rows to be updated that no local cache held: {text if there else 'n/a'}",
                   not missed if there else None,
                   "Counted from the accesses of each step: looked up in its forward pass, put "
                   "out by what was looked up after it. A cache below the keys of one mini-batch "
                   "cannot hold them all; sim train counts update_misses in RTL.", found)


TRAINING = (techniques, local_cache, full, saturation, scaling, graph, updates)
"""The claims about training."""
