"""Claims about the system as a whole: C15, C16, C23."""

from itertools import pairwise

from sim.experiments.claims.book import NIC, Book
from sim.experiments.claims.rules import settled
from sim.experiments.claims.verdict import Verdict, claim
from sim.experiments.claims.words import listed, share
from sim.experiments.figures.estimate import Estimate, combined, mean_of
from sim.experiments.figures.similarity import compared, similarities

__all__ = ["SYSTEM"]

_NOTICED = 0.01
"""Least share that counts as relief."""

_NEARLY_40 = (0.3, 0.5)

_ALL_TO_ALL = ("input_all_to_all", "embedding_all_to_all")
_CUTS = (
    ("LC cuts lookup", "lc", "inference", ("embedding_lookup",)),
    ("RC cuts all-to-all", "rc", "inference", _ALL_TO_ALL),
    ("LC cuts overhead", "lc", "inference", ("overhead",)),
    ("RC cuts overhead", "rc", "inference", ("overhead",)),
    ("SC cuts backward all-to-all", "sc", "training", ("backward_all_to_all",)),
    ("SC cuts irregular", "sc", "training", ("irregular",)))


def _less(own: Estimate | None, other: Estimate | None) -> Estimate | None:
    """Return the relative reduction of ``own`` against ``other``; 0 if ``other`` is 0."""
    return combined(lambda mine, its: 1 - mine / its if its else 0.0, own, other)


@claim("C15", "All-to-all is nearly 40 % of inference time; LC cuts lookup, RC all-to-all, both "
              "overhead; SC cuts backward all-to-all and irregular computation.", "fig27")
def breakdown(book: Book) -> Verdict:
    parts = book.each(lambda dataset: combined(
        lambda own, whole: own / whole, book.phases(dataset, book.base, _ALL_TO_ALL),
        book.value("service_us", dataset, book.base)))
    part = mean_of(parts)
    each = {name: book.each(lambda dataset: _less(
        *(book.phases(dataset, which, phases, workload) for which in (system, NIC))))
        for name, system, workload, phases in _CUTS}
    cuts = {name: mean_of(values) for name, values in each.items()}
    low, high = _NEARLY_40
    near = None if part is None else low <= part.value <= high
    agrees = settled([near, *(None if value is None else value.value > _NOTICED
                              for value in cuts.values())])
    missed = [f"{name} (by {share(cuts[name])}, of {_us(book, workload, phases)})"
              for name, _, workload, phases in _CUTS
              if (value := cuts[name]) and value.value <= _NOTICED]
    why = f"All-to-all takes {share(part)}; nearly 40 % is read as {low:.0%} to {high:.0%}. "
    why += (f"Not confirmed: {', '.join(missed)}" if missed else "Every cut is confirmed") + (
        ". Cuts are relative to the NIC alone and refer to the critical path of a mini-batch that "
        "runs alone: work that overlaps longer work cannot be cut.")
    return Verdict(f"all-to-all {share(part)} of {book.base}'s mini-batch ({listed(parts)}); "
                   f"over the NIC alone {listed(cuts)}", agrees, why,
                   {"all_to_all": parts, "cuts": each})


def _us(book: Book, workload: str, phases: tuple[str, ...]) -> str:
    """Return the time of some phases with the NIC alone, in words."""
    found = mean_of(book.each(lambda dataset: book.phases(dataset, NIC, phases, workload)))
    return "n/a" if found is None else f"{found.value:.0f} us"


@claim("C16", "Mini-batches become less alike as a window is consumed; a refresh restores it.",
       "fig08")
def refresh(book: Book) -> Verdict:
    found, restored = {}, {}
    for dataset in book.setting.datasets:
        row = next(row for row in compared(book.setting, dataset) if row["algorithm"] == "graph")
        found[dataset] = {name: row[name] for name in ("first_similarity", "last_similarity")}
        of_each = list(similarities(book.setting, dataset, "graph"))
        restored[dataset] = all(now > before for (_, before), (fresh, now) in pairwise(of_each)
                                if fresh)
    text = "; ".join(f"{dataset} {row['first_similarity']:.2f} falls to "
                     f"{row['last_similarity']:.2f}" for dataset, row in found.items())
    least = min(found, key=lambda name: found[name]["first_similarity"]
                - found[name]["last_similarity"])
    fall = found[least]["first_similarity"] - found[least]["last_similarity"]
    again = ("every window begins with more similarity than the previous window ended with"
             if all(restored.values()) else
             "not every window begins with more similarity than the previous window ended with")
    return Verdict(f"similarity, first and last mini-batch of windows: {text}",
                   fall > 0 and all(restored.values()),
                   f"Means over windows; it falls least on {least}, by {fall:.2f}; {again}.", found)


@claim("C23", "Figure 2: RC relieves communication most, then SC, then GA; RC and LC memory, more "
              "than GA; SC and GA computation.", "fig22", "fig25")
def relief(book: Book) -> Verdict:
    marks = {"communication": ("RC", "SC", "GA"), "memory": ("RC", "LC", "GA"),
             "computation": ("SC", "GA")}
    systems = {"GA": "ga+nic", "LC": "lc", "RC": "rc", "SC": "sc"}
    metrics = {"communication": "traffic.total.bytes", "memory": "nic_us.gathered",
               "computation": "busy_us.gpu"}

    def relieved(metric: str, system: str) -> Estimate | None:
        return mean_of(book.each(lambda dataset: _less(
            *(book.value(metric, dataset, which) for which in (system, NIC)))))

    found = {name: {part: relieved(metric, systems[part]) for part in systems}
             for name, metric in metrics.items()}
    found["communication"]["SC"] = mean_of(book.each(lambda dataset: _less(
        *(_backward_bytes(book, dataset, which) for which in ("sc", NIC)))))
    wrong, missing = [], False
    for name, marked in marks.items():
        known = {part: value.value for part, value in found[name].items() if value is not None}
        missing |= not set(marked) <= set(known)
        wrong += [f"{part} relieves {name} by {share(found[name][part])}" for part in marked
                  if known.get(part, 1.0) <= _NOTICED]
        ranks = {"communication": (("RC", "SC"), ("SC", "GA")),
                 "memory": (("RC", "GA"), ("LC", "GA")), "computation": ()}[name]
        wrong += [f"{more} relieves {name} by {share(found[name][more])}, {less} by "
                  f"{share(found[name][less])}"
                  for more, less in ranks
                  if more in known and less in known and known[more] <= known[less]]
    text = "; ".join(f"{name}: {listed(row)}" for name, row in found.items())
    why = "Not as in the figure: " + "; ".join(wrong) if wrong else "Ranked as in the figure"
    if any(each.startswith("GA relieves communication") for each in wrong):
        why += (". Without the requester-side merge, every lookup of a key is sent, however "
                "similar the samples of a mini-batch are")
    return Verdict(f"relief of {text}", False if wrong else None if missing else True,
                   f"{why}. Bytes on the network (of SC in training, where it reduces gradients; "
                   "without the all-reduce), rows read in the busiest GPU's memory and that GPU's "
                   "busy time, per mini-batch, relative to the NIC alone.", found)


def _backward_bytes(book: Book, dataset: str, system: str) -> Estimate | None:
    """Return the bytes of a training step without the all-reduce, which is the same for all
    systems."""
    return combined(lambda total, reduced: total - reduced, *(
        book.value(f"traffic.{kind}.bytes", dataset, system, "training")
        for kind in ("total", "all_reduce")))


SYSTEM = (breakdown, refresh, relief)
"""The claims about the system as a whole."""
