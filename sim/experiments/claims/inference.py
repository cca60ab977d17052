"""Claims about inference: C1, C6 to C8, C19, C24."""

from sim.experiments.claims.book import NIC, Book
from sim.experiments.claims.rules import Ruling, above, factor_of, settled, unchanged
from sim.experiments.claims.verdict import Verdict, claim
from sim.experiments.claims.words import factor, listed, times
from sim.experiments.figures.estimate import Estimate, combined, mean_of

__all__ = ["INFERENCE"]

_GRAPH = "ga+nic"
"""The graph algorithm over the NIC alone, which dedupes and can therefore profit from it."""


def _parts(book: Book) -> dict[str, dict[str, Estimate | None]]:
    """Return the gain of each technique over the NIC alone, for each data set."""
    return {name: book.over_nic(system) for name, system in (
        ("GA", _GRAPH), ("LC", "lc"), ("RC", "rc"), ("SC", "sc"))}


@claim("C1", "The graph algorithm makes inference 1.2x faster on average.", "fig22")
def graph(book: Book) -> Verdict:
    found = book.over_nic(_GRAPH)
    average = mean_of(found)
    ruling = factor_of(1.2, average)
    kept = book.each(lambda dataset: combined(lambda own, base: 1 - own / base, *(
        book.value("unique_keys", dataset, system) for system in (_GRAPH, NIC))))
    own = mean_of(book.speedups(book.graph))
    return Verdict(
        f"over the NIC alone, mean {factor(average)} ({times(found)})", ruling.agrees,
        f"{ruling.why} Unique keys of a mini-batch that it saves: {listed(kept)}; with it a "
        f"mini-batch is mostly {book.mostly(_GRAPH)}. Over {book.base} without a NIC it brings "
        f"{factor(own)}.", {"mean": average, **found})


@claim("C6", "SmartNIC computation has little effect on inference latency.", "fig17", "fig22")
def computation(book: Book) -> Verdict:
    found = book.over_nic("sc")
    ruling = unchanged(found)
    return Verdict(f"over the NIC alone {times(found)}", ruling.agrees,
                   f"{ruling.why} It relieves the GPU and the host, which matters only if they are "
                   f"the bottleneck. With the NIC alone a mini-batch is mostly {book.mostly(NIC)}.",
                   found)


@claim("C7", "Inference gains more on Kaggle and Terabyte than on Avazu.", "fig22")
def by_dataset(book: Book) -> Verdict:
    found = book.speedups(book.full)
    avazu = found.get("avazu")
    more = {name: above(found.get(name), avazu) for name in ("kaggle", "terabyte")}
    absent = {"avazu", *more} - set(found)
    book.asked += [f"{name} is not evaluated" for name in sorted(absent)]
    agrees = None if absent else settled(more.values())
    why = ", ".join(f"{factor(found[name])} on {name}" for name, value in more.items()
                    if value is not None and value is agrees)
    return Verdict(times(found), agrees, f"{why} against {factor(avazu)} on avazu. A mini-batch of "
                   f"the full system is mostly {book.mostly(book.full)}.", found)


@claim("C8", "The full system makes inference 2.1x faster.", "fig22")
def full(book: Book) -> Verdict:
    found = book.speedups(book.full)
    average = mean_of(found)
    ruling = factor_of(2.1, average)
    alone = mean_of(book.speedups(NIC))
    return Verdict(f"mean {factor(average)} ({times(found)})", ruling.agrees,
                   f"{ruling.why} The NIC alone brings {factor(alone)}. A mini-batch of the full "
                   f"system is mostly {book.mostly(book.full)}.", {"mean": average, **found})


@claim("C19", "The techniques together bring more than the sum of their parts.", "fig22")
def together(book: Book) -> Verdict:
    whole, parts = book.over_nic(book.full), _parts(book)
    total = book.each(lambda dataset: combined(
        lambda *each: 1 + sum(part - 1 for part in each), *(
            values[dataset] for values in parts.values())))
    more = {dataset: combined(lambda own, its: own - its, whole[dataset], total[dataset])
            for dataset in whole}
    agrees = settled(above(whole[dataset], total[dataset]) for dataset in whole)
    known = {dataset: value for dataset, value in more.items() if value is not None}
    least = min(known, key=lambda dataset: known[dataset].value, default=None)
    why = "" if least is None else (
        f"On {least} they bring {factor(whole[least])} together and {factor(total[least])} as the "
        "sum of what each brings alone: " + listed(
            {name: values[least] for name, values in parts.items()}, factor) + ". ")
    return Verdict(
        "over the NIC alone " + "; ".join(
            f"{dataset} {factor(whole[dataset])}, sum {factor(total[dataset])}"
            for dataset in whole), agrees,
        f"{why}The NIC's own gain is in neither of them.",
        {"together": whole, "sum_of_parts": total, **parts})


@claim("C24", "The remote cache and the graph algorithm bring most of the full system's gain in "
              "inference.", "fig22")
def most(book: Book) -> Verdict:
    parts = _parts(book)
    means = {name: mean_of(values) for name, values in parts.items()}
    ruling = _ranked(means)
    alone = mean_of(book.speedups(NIC))
    return Verdict(f"over the NIC alone {times(means)}", ruling.agrees,
                   f"{ruling.why} Means over data sets; the NIC alone brings {factor(alone)} over "
                   f"{book.base}.", {"mean": means, **parts})


def _ranked(means: dict[str, Estimate | None]) -> Ruling:
    """Judge whether RC and GA gain, and more than LC and SC do."""
    known = {name: value for name, value in means.items() if value is not None}
    if len(known) < len(means):
        return Ruling(None)
    least = min(("RC", "GA"), key=lambda name: known[name].value)
    other = max(("LC", "SC"), key=lambda name: known[name].value)
    said = f"{least} brings {factor(known[least])}, {other} {factor(known[other])}"
    if known[least].value <= 1:
        return Ruling(False, f"{said}: {least} brings nothing.")
    return Ruling(above(known[least], known[other]), f"{said}.")


INFERENCE = (graph, computation, by_dataset, full, together, most)
"""The claims about inference."""
