"""Claims about training: C9, C11, C12, C21."""

from collections.abc import Sequence

from sim.experiments.claims.book import NIC, Book
from sim.experiments.claims.rules import HARDLY, SEEN, Ruling, above, factor_of, settled, together
from sim.experiments.claims.verdict import Verdict, claim
from sim.experiments.claims.words import factor, times
from sim.experiments.figures.estimate import Estimate, combined, mean_of
from sim.experiments.figures.fig26 import BATCH_FACTORS, batch_fields

__all__ = ["TRAINING"]

_WITHOUT = "without_all_reduce.samples_per_second"
_CLAIMED = {"LC": ("lc", 1.3), "SC": ("sc", 1.4), "GA": ("ga+nic", 1.1)}


@claim("C9", "Training throughput: local cache 1.3x, SmartNIC computation 1.4x, graph algorithm "
             "1.1x.", "fig23", "fig25")
def techniques(book: Book) -> Verdict:
    each = {name: book.over_nic(system, "training") for name, (system, _) in _CLAIMED.items()}
    found = {name: mean_of(values) for name, values in each.items()}
    rulings = [factor_of(claimed, found[name], name) for name, (_, claimed) in _CLAIMED.items()]
    alone = mean_of(book.speedups(NIC, "training"))
    without = {name: mean_of(book.speedups(system, "training", base=NIC, metric=_WITHOUT))
               for name, (system, _) in _CLAIMED.items()}
    return Verdict(f"over the NIC alone, means: {times(found)}",
                   settled(ruling.agrees for ruling in rulings),
                   f"{' '.join(ruling.why for ruling in rulings)} The NIC alone brings "
                   f"{factor(alone)} over {book.base}. Without the MLPs' all-reduce: "
                   f"{times(without)}. A step with the NIC alone is mostly "
                   f"{book.mostly(NIC, 'training')}.",
                   {"mean": found, **each})


@claim("C11", "The full system trains 1.5x (text; a maximum) or 1.6x (abstract) faster.", "fig25")
def full(book: Book) -> Verdict:
    found = book.speedups(book.full, "training")
    average, most = mean_of(found), combined(lambda *each: max(each), *found.values())
    rulings = [factor_of(1.5, most, "The most"), factor_of(1.6, average, "The mean")]
    without = mean_of(book.speedups(book.full, "training", metric=_WITHOUT))
    return Verdict(f"mean {factor(average)}, most {factor(most)} ({times(found)})",
                   settled(ruling.agrees for ruling in rulings),
                   f"{' '.join(ruling.why for ruling in rulings)} Without the MLPs' all-reduce the "
                   f"mean is {factor(without)}. A step of the full system is mostly "
                   f"{book.mostly(book.full, 'training')}.",
                   {"mean": average, "most": most, **found})


@claim("C12", "The speedup saturates as the training mini-batch grows.", "fig26")
def saturation(book: Book) -> Verdict:
    found: dict[str, dict[str, Estimate | None]] = {}
    rulings: dict[str, Ruling] = {}
    for dataset in book.setting.datasets:
        fields = {factor: batch_fields(book.setting, dataset, factor) for factor in BATCH_FACTORS}
        found[dataset] = {f"x{factor}": book.speedup(
            dataset, "sc", "training", base_fields=each, **each) for factor, each in fields.items()}
        rulings[dataset] = _saturates(list(found[dataset].values()))
    ruling = together(rulings)
    return Verdict("by multiples of the reference mini-batch: " + "; ".join(
        f"{dataset} {times(values)}" for dataset, values in found.items()), ruling.agrees,
        f"{ruling.why}. Saturated: the last doubling changes it by at most {HARDLY:.0%}, and does "
        "not raise it more than the doubling before.", found)


def _saturates(values: Sequence[Estimate | None]) -> Ruling:
    """Judge whether the last value hardly differs, and growth slows."""
    before, last = (combined(lambda less, more: more / less - 1, *pair)
                    for pair in (values[-3:-1], values[-2:]))
    if before is None or last is None:
        return Ruling(None)
    agrees = abs(last.value) <= HARDLY and last.value <= before.value + SEEN
    return Ruling(agrees, f"the last doubling changes the speedup by {last.value:+.1%}, the "
                          f"previous one by {before.value:+.1%}")


@claim("C21", "The graph algorithm matters less in training than in inference.", "fig22", "fig25")
def graph(book: Book) -> Verdict:
    each = {workload: book.over_nic("ga+nic", workload) for workload in ("inference", "training")}
    found = {workload: mean_of(values) for workload, values in each.items()}
    less = combined(lambda inference, training: inference - training, *found.values())
    agrees, why = above(*found.values()), ""
    if less is not None:
        why = f"It gains {_signed(less.value)} more in inference than in training"
        why += "." if agrees else ": not more by what decimals can show."
    return Verdict(f"over the NIC alone, means: {times(found)}", agrees, why,
                   {"mean": found, **each})


def _signed(difference: float) -> str:
    """Return a difference of factors in words."""
    return f"{round(difference, 3) + 0:+.3f}x"


TRAINING = (techniques, full, saturation, graph)
"""The claims about training."""
