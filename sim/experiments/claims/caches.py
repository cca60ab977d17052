"""Claims about the caches and their sizes: C2 to C5, C10, C22."""

from collections.abc import Mapping

from sim.experiments.claims.book import NIC, Book
from sim.experiments.claims.rules import Ruling, gains, settled, together, trend, unchanged
from sim.experiments.claims.verdict import Verdict, claim
from sim.experiments.claims.words import factor, listed, number, times
from sim.experiments.figures.estimate import Estimate, combined, mean_of

__all__ = ["CACHES"]

_BySize = dict[str, dict[str, Estimate | None]]
"""Values by data set and cache size."""


@claim("C2", "The local cache alone hardly changes inference latency, whatever its size.", "fig16")
def local_cache(book: Book) -> Verdict:
    found: _BySize = {dataset: {
        f"{share:.0%}": book.speedup(dataset, "lc", base=NIC, local_cache=share,
                                     base_fields=book.setting.sweep(dataset))
        for share in book.setting.sizes(dataset) if share}
        for dataset in book.setting.datasets}
    ruling = unchanged({f"{dataset} at {size}": value for dataset, sizes in found.items()
                        for size, value in sizes.items()})
    return Verdict("over the NIC alone, by size: " + "; ".join(
        f"{dataset} {times(sizes)}" for dataset, sizes in found.items()), ruling.agrees,
        f"{ruling.why} A cache shortens only the wait for gathers. With the NIC alone a "
        f"mini-batch is mostly {book.mostly(NIC)}.", found)


@claim("C3", "The hit rate of the local cache rises with its size.", "fig18")
def local_hits(book: Book) -> Verdict:
    found = _by_size(book, "local_cache.hit_rate", "lc", "local_cache", off=False)
    return _over_sizes(book, found, "hit rate", True, "local_cache.hit_rate", "lc")


@claim("C4", "The remote cache speeds inference up; lookups saved rise with its size; the graph "
             "algorithm adds to it.", "fig19", "fig20")
def remote_cache(book: Book) -> Verdict:
    faster = book.over_nic("rc")
    own = {dataset: _reference(book, dataset) for dataset in book.setting.datasets}
    more = book.each(lambda dataset: book.speedup(
        dataset, "ga+rc", base="rc", base_fields={"remote_cache": own[dataset]},
        remote_cache=own[dataset]))
    found = _by_size(book, "saved_lookups", "rc", "remote_cache", off=False)
    saved = _over_sizes(book, found, "lookups saved", True, "saved_lookups", "rc")
    over_nic, over_rc = mean_of(faster), mean_of(more)
    rulings = {"RC over the NIC alone": gains(faster, over_nic),
               "GA over RC": gains(more, over_rc)}
    why = " ".join(f"{name}: {ruling.why}" for name, ruling in rulings.items())
    return Verdict(
        f"over the NIC alone mean {factor(over_nic)} ({times(faster)}); {saved.ours}; with the "
        f"graph algorithm {factor(over_rc)} more ({times(more)})",
        settled([*(ruling.agrees for ruling in rulings.values()), saved.agrees]),
        f"{why} Lookups saved: {saved.why} With RC a mini-batch is mostly {book.mostly('rc')}.",
        {"over_nic": faster, "with_graph": more, "saved": found})


@claim("C5", "The hit rate of the local cache falls as the remote cache grows.", "fig21")
def local_hits_behind_remote(book: Book) -> Verdict:
    found = _by_size(book, "local_cache.hit_rate", "lc+rc", "remote_cache", off=True)
    return _over_sizes(book, found, "hit rate of the local cache", False, "local_cache.hit_rate",
                       "lc")


@claim("C10", "Training throughput rises with the size of the local cache.", "fig23", "fig24")
def training(book: Book) -> Verdict:
    found = _by_size(book, "samples_per_second", "lc", "local_cache", off=True,
                     workload="training")
    judged = _over_sizes(book, found, "", True, "samples_per_second", "lc", "training")
    ends = {dataset: combined(lambda low, high: high / low, *(
        list(sizes.values())[place] for place in (0, -1))) for dataset, sizes in found.items()}
    return Verdict(f"largest over smallest cache: {times(ends)}", judged.agrees,
                   f"{judged.why} A step with LC is mostly {book.mostly('lc', 'training')}.", found)


@claim("C22", "The local cache always holds the row that is to be updated.", "fig24")
def updates(book: Book) -> Verdict:
    found: _BySize = {}
    for dataset in book.setting.datasets:
        shares = [share for share in book.setting.sizes(dataset) if share]
        found[dataset] = {f"{share:.0%}": combined(
            lambda rows, misses: misses / rows if rows else None, *(
                book.value(f"updates.{what}", dataset, "lc", "training", local_cache=share)
                for what in ("rows", "misses"))) for share in shares}
    every = {f"{dataset} {size}": value for dataset, sizes in found.items()
             for size, value in sizes.items()}
    agrees = settled(None if value is None else value.value == 0 for value in every.values())
    missed = {name: value for name, value in every.items() if value and value.value}
    worst = max(missed, key=lambda name: missed[name].value, default=None)
    why = ("Every row is still cached when its gradient arrives." if worst is None
           else f"At {worst}, lookups of the same step evicted {missed[worst].value:.0%} of the "
                "rows: a cache below the unique keys of one mini-batch cannot hold them all.")
    return Verdict("updated rows that miss the local cache: "
                   + (listed(missed) if missed else "none at any size"), agrees,
                   f"{why} Counted from the accesses of each step; sim train counts update_misses "
                   "in RTL.", found)


def _reference(book: Book, dataset: str) -> float:
    """Return the size of a cache in the sweep that is nearest to the reference setting's."""
    return min(book.setting.sizes(dataset), key=lambda share: (abs(share - 0.1), -share))


def _by_size(book: Book, metric: str, system: str, cache: str, off: bool,
             workload: str = "inference") -> _BySize:
    """Return a metric by data set and size of a cache; ``off``: also of the cache switched off."""
    return {dataset: {f"{share:.0%}": book.value(metric, dataset, system, workload,
                                                 **{cache: share})
                      for share in book.setting.sizes(dataset) if share or off}
            for dataset in book.setting.datasets}


def _over_sizes(book: Book, found: Mapping[str, Mapping[str, Estimate | None]], name: str,
                rises: bool, metric: str, noise_of: str, workload: str = "inference") -> Verdict:
    """Judge whether a metric only rises, or only falls, with the size of a cache.

    ``metric``, ``noise_of``: what the seeds' noise is read from, at the reference setting.
    """
    rulings: dict[str, Ruling] = {
        dataset: trend(list(sizes.values()), rises,
                       book.noise(metric, dataset, noise_of, workload))
        for dataset, sizes in found.items()}
    ends = "; ".join(f"{dataset} {number(values[0])} to {number(values[-1])}"
                     for dataset, sizes in found.items() if (values := list(sizes.values())))
    ruling = together(rulings)
    return Verdict(f"{name}: {ends}", ruling.agrees,
                   f"From the smallest to the largest size, {ruling.why}.", found)


CACHES = (local_cache, local_hits, remote_cache, local_hits_behind_remote, training, updates)
"""The claims about caches."""
