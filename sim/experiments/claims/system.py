"""Claims about the system as a whole: C15 to C18, C20, C23."""

from math import log

from sim.experiments.claims.book import Book, mean
from sim.experiments.claims.verdict import Verdict, claim, less, times
from sim.experiments.figures.fig26 import BATCH_FACTORS, batch_fields
from sim.experiments.figures.similarity import compared

__all__ = ["SYSTEM"]

_ALL_TO_ALL = ("input_all_to_all", "embedding_all_to_all")
_CUTS = (
    ("LC cuts lookup", "lc", "inference", ("embedding_lookup",)),
    ("RC cuts all-to-all", "rc", "inference", _ALL_TO_ALL),
    ("LC cuts overhead", "lc", "inference", ("overhead",)),
    ("RC cuts overhead", "rc", "inference", ("overhead",)),
    ("SC cuts backward all-to-all", "sc", "training", ("backward_all_to_all",)),
    ("SC cuts irregular", "sc", "training", ("irregular",)))


@claim("C15", "All-to-all is nearly 40 % of inference time; LC cuts lookup, RC all-to-all, both "
              "overhead; SC cuts backward all-to-all and irregular computation.", "fig27")
def breakdown(book: Book) -> Verdict:
    part = mean(book.share(book.base, _ALL_TO_ALL))
    cuts: dict[str, float | None] = {}
    for name, system, workload, phases in _CUTS:
        ratios: dict[str, float | None] = {}
        for dataset in book.setting.datasets:
            own, base = (
                [book.value(f"phases_us.{phase}", dataset, which, workload) for phase in phases]
                for which in (system, book.base))
            ratios[dataset] = None if None in own + base else (
                sum(filter(None, own)) / (sum(filter(None, base)) or 1e-12))
        average = mean(ratios)
        cuts[name] = None if average is None else 1 - average
    known = [value for value in cuts.values() if value is not None]
    agrees = None if part is None or len(known) < len(cuts) else (
        0.3 <= part <= 0.5 and all(value > 0 for value in known))
    said = "n/a" if part is None else f"{part:.0%}"
    return Verdict(f"all-to-all {said} of {book.base}'s mini-batch; cut by: {less(cuts)}", agrees,
                   "Nearly 40 % is taken as 30 to 50 %. A cut is against the baseline, so the NIC "
                   "as transport is part of it.", {"all_to_all": part, **cuts})


@claim("C16", "Mini-batches become less alike as a window is consumed; a refresh restores it.",
       "fig08")
def refresh(book: Book) -> Verdict:
    found = {}
    for dataset in book.setting.datasets:
        row = next(row for row in compared(book.setting, dataset)
                   if row["algorithm"] == "graph")
        found[dataset] = {name: row[name] for name in ("first_similarity", "last_similarity")}
    text = "; ".join(f"{dataset} {row['first_similarity']:.2f} falls to "
                     f"{row['last_similarity']:.2f}" for dataset, row in found.items())
    return Verdict(f"similarity, first and last mini-batch of windows: {text}", all(
        row["last_similarity"] < row["first_similarity"] for row in found.values()),
        "Means over windows: each window begins alike again.", found)


@claim("C17", "The whole application on the NIC is slower than with the GPU.", "fig22")
def all_on_nic(book: Book) -> Verdict:
    found = book.speedups("all-on-nic", base="fs")
    known = {name: value for name, value in found.items() if value is not None}
    reasons = []
    for dataset in book.setting.datasets:
        outcome = book.results.get(
            book.setting.point(dataset, "all-on-nic", software=book.software))
        if outcome and outcome.metrics and not outcome.metrics.get("applicable", True):
            reasons.append(f"{dataset}: not applicable, {outcome.metrics['why']}")
    return Verdict(f"against the full system: {times(found)}",
                   all(value < 1 for value in known.values()) if known else None,
                   "; ".join(["Analytical, from the DSPs that are left; judged where it applies",
                              *reasons]), found)


@claim("C18", "More nodes: less memory pressure on each, more communication.", "fig14")
def pressure(book: Book) -> Verdict:
    low, high = min(book.setting.scale_nodes), max(book.setting.scale_nodes)
    found: dict[str, dict[str, float | None]] = {}
    for name, metric in (("embedding lookup of a node", "phases_us.embedding_lookup"),
                         ("bytes of all nodes", "traffic.total.bytes")):
        found[name] = {
            dataset: None if not few_nodes or many is None else many / few_nodes
            for (dataset, few_nodes), many in zip(
                book.values(metric, book.base, nodes=low).items(),
                book.values(metric, book.base, nodes=high).values())}
    lookups, traffic = (list(values.values()) for values in found.values())
    text = "; ".join(f"{name} {times(values)}" for name, values in found.items())
    less_each = all(value is not None and value < 1 for value in lookups)
    more_sent = all(value is not None and value > 1 for value in traffic)
    return Verdict(f"{low} to {high} nodes: {text}",
                   None if None in lookups + traffic else less_each and more_sent, "", found)


@claim("C20", "All-to-all grows quadratically with the batch.", "fig26")
def growth(book: Book) -> Verdict:
    last = BATCH_FACTORS[-1]
    found: dict[str, float | None] = {}
    for dataset in book.setting.datasets:
        small, large = (
            [book.value(f"traffic.{kind}.bytes", dataset, "bl-paper", "training",
                        **batch_fields(book.setting, dataset, factor))
             for kind in ("lookups", "vectors")]
            for factor in (1, last))
        found[dataset] = None if None in small + large or not any(small) else (
            log(sum(filter(None, large)) / sum(filter(None, small))) / log(last))
    known = [value for value in found.values() if value is not None]
    said = ", ".join(f"{dataset} {'n/a' if value is None else f'{value:.2f}'}"
                     for dataset, value in found.items())
    return Verdict(f"exponent of the bytes of lookups and vectors: {said}",
                   None if len(known) < len(found) else all(value > 1.5 for value in known),
                   f"bl-paper, 1 to {last} times the reference mini-batch; 2 would be quadratic, "
                   "1 linear, as bytes per sample do not depend on the batch.", found)


@claim("C23", "Figure 2: RC relieves communication most, RC and LC memory, SC and GA computation.",
       "fig22")
def relief(book: Book) -> Verdict:
    measures = {"communication": "traffic.total.bytes", "memory": "busy_us.gpu_memory",
                "computation": "busy_us.gpu"}
    bases = {"ga": "bl-paper", "lc": "nic", "rc": "nic", "sc": "nic"}
    found: dict[str, dict[str, float | None]] = {}
    for name, metric in measures.items():
        found[name] = {}
        for system, base in bases.items():
            ratios = {dataset: None if own is None or not other else own / other
                      for (dataset, own), other in zip(book.values(metric, system).items(),
                                                       book.values(metric, base).values())}
            average = mean(ratios)
            found[name][system] = None if average is None else 1 - average
    if any(value is None for row in found.values() for value in row.values()):
        return Verdict("n/a", None, "", found)
    rows = {name: {system: value or 0.0 for system, value in row.items()}
            for name, row in found.items()}
    memory, computation = rows["memory"], rows["computation"]
    agrees = (max(rows["communication"], key=rows["communication"].__getitem__) == "rc"
              and min(memory["rc"], memory["lc"]) >= max(memory["ga"], memory["sc"])
              and min(computation["sc"], computation["ga"]) > 0)
    text = "; ".join(f"{name}: {less(row)}" for name, row in rows.items())
    return Verdict(f"relief of {text}", agrees,
                   "Bytes on the network, busy time of GPU memory and of the GPU per mini-batch; "
                   "GA against bl-paper, the others against the NIC alone.", found)


SYSTEM = (breakdown, refresh, all_on_nic, pressure, growth, relief)
"""The claims about the system as a whole."""
