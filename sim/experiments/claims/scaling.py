"""Claims about growth, with nodes and with the mini-batch: C13, C14, C17, C18, C20."""

from math import log

from sim.experiments.claims.book import NIC, Book
from sim.experiments.claims.rules import above, settled, together, trend
from sim.experiments.claims.verdict import Verdict, claim
from sim.experiments.claims.words import factor, times
from sim.experiments.figures.alternate import CARD, GPU, alternate_fields, batches
from sim.experiments.figures.estimate import Estimate, combined, mean_of
from sim.experiments.figures.fig26 import BATCH_FACTORS, batch_fields

__all__ = ["SCALING"]


def _ends(book: Book, metric: str, dataset: str, system: str,
          workload: str = "inference") -> Estimate | None:
    """Return the ratio of a metric at the most nodes to that at the fewest."""
    nodes = book.setting.numbers_of_nodes(dataset)
    few, many = (book.value(metric, dataset, system, workload, nodes=count)
                 for count in (min(nodes), max(nodes)))
    return combined(lambda low, high: high / low if low else None, few, many)


def _span(book: Book) -> str:
    return f"{min(book.setting.scale_nodes)} to {max(book.setting.scale_nodes)} nodes"


@claim("C13", "Inference scales better with nodes with the techniques than without.", "fig14")
def inference(book: Book) -> Verdict:
    found = {system: book.each(lambda dataset: combined(
        lambda ratio: 1 / ratio,
        _ends(book, book.metric("inference"), dataset, system)))
        for system in (book.full, book.base)}
    more = book.each(lambda dataset: combined(
        lambda own, base: own / base, *(values[dataset] for values in found.values())))
    known = {name: value for name, value in more.items() if value is not None}
    least = min(known, key=lambda name: known[name].value, default=None)
    why = "" if least is None else (
        f"On {least}, {_span(book)} make FS {factor(found[book.full][least])} as fast and "
        f"{book.base} {factor(found[book.base][least])}. ")
    return Verdict(f"{_span(book)}: FS {times(found[book.full])}; {book.base} "
                   f"{times(found[book.base])}",
                   settled(above(*(values[dataset] for values in found.values()))
                           for dataset in more),
                   f"{why}Time per mini-batch of the same size: parts that do not shrink with a "
                   f"node's share limit the scaling. That of FS is mostly "
                   f"{book.mostly(book.full)}.", found)


@claim("C14", "SmartNIC computation drives how training scales with nodes.", "fig15")
def training(book: Book) -> Verdict:
    each = {name: book.each(lambda dataset: _ends(book, "samples_per_second", dataset, system,
                                                  "training"))
            for name, system in (("SC", "sc"), ("LC", "lc"), ("GA", "ga"), ("NIC alone", NIC),
                                 (book.base, book.base))}
    found = {name: mean_of(values) for name, values in each.items()}
    known = {name: value for name, value in found.items() if value is not None}
    best = max((name for name in known if name != "SC"), key=lambda name: known[name].value,
               default=None)
    agrees = why = None
    if len(known) == len(found) and best is not None:
        agrees = above(known["SC"], known[best])
        why = (f"The throughput with SC becomes {factor(known['SC'])}, with {best}, the best of "
               f"the others, {factor(known[best])}.")
    return Verdict(f"throughput, {_span(book)}: {times(found)}", agrees,
                   f"{why} A step with SC is mostly {book.mostly('sc', 'training')}.",
                   {"mean": found, **each})


@claim("C17", "The whole application on the NIC is slower than with the GPU.", "alternate")
def all_on_nic(book: Book) -> Verdict:
    found: dict[str, Estimate | None] = {}
    for dataset in book.setting.datasets:
        for size in batches(book.setting, dataset):
            fields = alternate_fields(book.setting, dataset, size)
            found[f"{dataset} at {size:,}"] = book.speedup(
                dataset, CARD, base=GPU, base_fields=fields, **fields)
    known = {name: value for name, value in found.items() if value is not None}
    faster = [name for name in known if known[name].value >= 1]
    slower = [name for name in known if name not in faster]
    why = (f"Slower on {', '.join(slower)}; faster on {', '.join(faster)}" if faster and slower else
           f"{'Faster' if faster else 'Slower'} everywhere")
    return Verdict(f"against the GPU with the NIC, by samples of a mini-batch: {times(found)}",
                   settled(None if value is None else value.value < 1 for value in found.values()),
                   f"{why}. A small mini-batch ends before the GPU's launches and calls would; a "
                   "large mini-batch waits for the multipliers. Analytical, from the DSPs that the "
                   "NIC leaves free.", found)


@claim("C18", "More nodes: less memory pressure on each, more communication.", "fig14")
def pressure(book: Book) -> Verdict:
    found, rulings = {}, {}
    for name, metric, rises in (("embedding lookup of a node", "phases_us.embedding_lookup", False),
                                ("bytes of all nodes", "traffic.total.bytes", True)):
        found[name] = book.each(lambda dataset: _ends(book, metric, dataset, book.base))
        rulings |= {f"{name} on {dataset}": trend(
            [book.value(metric, dataset, book.base, nodes=nodes)
             for nodes in book.setting.numbers_of_nodes(dataset)], rises,
            book.noise(metric, dataset, book.base)) for dataset in book.setting.datasets}
    ruling = together(rulings)
    return Verdict(f"{_span(book)}: " + "; ".join(
        f"{name} {times(values)}" for name, values in found.items()), ruling.agrees,
        f"From {_span(book)}, us or bytes a mini-batch, {ruling.why}.", found)


@claim("C20", "All-to-all grows quadratically with the batch.", "fig26")
def growth(book: Book) -> Verdict:
    last = BATCH_FACTORS[-1]

    def exponent(dataset: str) -> Estimate | None:
        values = [book.value(f"traffic.{kind}.bytes", dataset, "bl-paper", "training",
                             **batch_fields(book.setting, dataset, factor))
                  for factor in (1, last) for kind in ("lookups", "vectors")]
        return combined(lambda lookups, vectors, more_lookups, more_vectors: log(
            (more_lookups + more_vectors) / (lookups + vectors)) / log(last)
            if lookups + vectors else None, *values)

    found = book.each(exponent)
    average = mean_of(found)
    said = ", ".join(f"{dataset} {'n/a' if value is None else f'{value:.2f}'}"
                     for dataset, value in found.items())
    why = "" if average is None else (f"The exponent is {average.value:.2f}: 2 would be quadratic, "
                                      "1 is linear, ")
    return Verdict(f"exponent of the bytes of lookups and vectors: {said}",
                   settled(None if value is None else value.value > 1.5
                           for value in found.values()),
                   f"{why}because the bytes of a sample do not depend on the size of its "
                   f"mini-batch. bl-paper, 1 to {last} times the reference mini-batch.", found)


SCALING = (inference, training, all_on_nic, pressure, growth)
"""The claims about growth."""
