"""Claims about inference: C1 to C8, C13, C19, C24."""

from sim.experiments.claims.book import Book, mean
from sim.experiments.claims.verdict import HARDLY, Verdict, claim, factors, less, steps_of, times

__all__ = ["INFERENCE"]


def also_served_alone(book: Book, system: str, claimed: float, found: float | None) -> str:
    """Return the speedup of mini-batches served alone in words, where it gives another verdict."""
    alone = mean(book.speedups(system, metric="service_us"))
    if alone is None or found is None or (round(alone, 1) >= claimed) == (
            round(found, 1) >= claimed):
        return ""
    return f"mini-batches served alone give another verdict: {alone:.2f}x. "


@claim("C1", "The graph algorithm makes inference 1.2x faster on average.", "fig16", "fig22")
def graph(book: Book) -> Verdict:
    found = book.speedups(book.graph)
    kept = {name: None if not own or not base else 1 - own / base for (name, own), base in zip(
        book.values("unique_keys", book.graph).items(),
        book.values("unique_keys", book.base).values())}
    return factors(1.2, found, also_served_alone(book, book.graph, 1.2, mean(found))
                   + f"Unique keys saved: {less(kept)}. Most time of the baseline: "
                   + book.largest(book.base))


@claim("C2", "The local cache alone hardly changes inference latency, whatever its size.", "fig16")
def local_cache(book: Book) -> Verdict:
    found = {}
    for dataset in book.setting.datasets:
        sizes = [book.value("interval_us", dataset, "lc", local_cache=share)
                 for share in book.setting.sizes(dataset)]
        known = [size for size in sizes if size]
        found[dataset] = max(known) / min(known) - 1 if len(known) == len(sizes) else None
    changes = [change for change in found.values() if change is not None]
    return Verdict(f"largest change over sizes: {less(found)}",
                   max(changes) <= HARDLY if len(changes) == len(found) else None,
                   "Steady state hides what waits for the GPU's memory. " + book.largest("lc"),
                   found)


@claim("C3", "The hit rate of the local cache rises with its size.", "fig18")
def local_hits(book: Book) -> Verdict:
    return _with_size(book, "local_cache.hit_rate", "lc", "local_cache", "hit rate", rises=True)


@claim("C4", "The remote cache speeds inference up; lookups saved rise with its size; the graph "
             "algorithm adds to it.", "fig19", "fig20")
def remote_cache(book: Book) -> Verdict:
    over_nic = book.speedups("rc", base="nic")
    with_graph = book.speedups("ga+rc", base="rc")
    saved = _with_size(book, "saved_lookups", "rc", "remote_cache", "lookups saved", rises=True)
    both = [*over_nic.values(), *with_graph.values()]
    known = [value for value in both if value is not None]
    parts = [saved.agrees, *(value > 1 for value in known), *[None] * (len(both) - len(known))]
    # One that differs settles it, whatever was not measured.
    agrees = False if False in parts else None if None in parts else True
    return Verdict(f"over the NIC alone {times(over_nic)}; {saved.ours}; with the graph algorithm "
                   f"{times(with_graph)} more", agrees, book.largest("rc"),
                   {"over_nic": over_nic, "with_graph": with_graph, "saved": saved.values})


@claim("C5", "The hit rate of the local cache falls as the remote cache grows.", "fig21")
def local_hits_behind_remote(book: Book) -> Verdict:
    return _with_size(book, "local_cache.hit_rate", "lc+rc", "remote_cache",
                      "hit rate of the local cache", rises=False)


@claim("C6", "SmartNIC computation has little effect on inference latency.", "fig17")
def computation(book: Book) -> Verdict:
    found = book.speedups("sc", base="nic")
    known = [value for value in found.values() if value is not None]
    return Verdict(f"over the NIC alone {times(found)}",
                   None if len(known) < len(found) else
                   all(abs(value - 1) <= HARDLY for value in known),
                   f"Little is {HARDLY:.0%}. {book.largest('nic')}", found)


@claim("C7", "Inference gains more on Kaggle and Terabyte than on Avazu.", "fig22")
def by_dataset(book: Book) -> Verdict:
    found = book.speedups("fs")
    avazu = found.get("avazu")
    others = [found.get(name) for name in ("kaggle", "terabyte")]
    known = [value for value in others if value is not None]
    return Verdict(times(found), None if avazu is None or len(known) < 2 else min(known) > avazu,
                   book.largest("fs"), found)


@claim("C8", "The full system makes inference 2.1x faster.", "fig22")
def full(book: Book) -> Verdict:
    found = book.speedups("fs")
    return factors(2.1, found, also_served_alone(book, "fs", 2.1, mean(found))
                   + f"Left in the full system: {book.largest('fs')}")


@claim("C13", "Inference scales better with nodes with the techniques than without.", "fig14")
def scaling(book: Book) -> Verdict:
    low, high = min(book.setting.scale_nodes), max(book.setting.scale_nodes)
    found = {}
    for system in ("fs", book.base):
        found[system] = {
            dataset: None if not few or not many else few / many for (dataset, few), many in zip(
                book.values("interval_us", system, nodes=low).items(),
                book.values("interval_us", system, nodes=high).values())}
    pairs = list(zip(found["fs"].values(), found[book.base].values()))
    known = [(own, base) for own, base in pairs if own is not None and base is not None]
    return Verdict(f"{low} to {high} nodes: FS {times(found['fs'])}; {book.base} "
                   f"{times(found[book.base])}",
                   None if len(known) < len(pairs) else all(own > base for own, base in known),
                   book.largest("fs"), found)


@claim("C19", "The techniques together bring more than the sum of their parts.", "fig22")
def together(book: Book) -> Verdict:
    found, differences = {}, []
    for dataset, full_system in book.speedups("fs").items():
        parts = [book.speedups(system)[dataset] for system in (book.graph, "lc", "rc", "sc")]
        known = [part for part in parts if part is not None]
        there = full_system is not None and len(known) == len(parts)
        found[dataset] = {"together": full_system,
                          "sum_of_parts": 1 + sum(part - 1 for part in known) if there else None}
        differences.append(full_system - found[dataset]["sum_of_parts"] if there else None)
    text = "; ".join(
        f"{dataset} {both['together']:.2f}x, sum {both['sum_of_parts']:.2f}x"
        for dataset, both in found.items() if both["sum_of_parts"] is not None)
    return Verdict(text or "n/a", None if None in differences else all(
        difference > 0 for difference in differences if difference is not None),
        "Sum: 1 and the gains of GA, LC, RC and SC alone; each of the last three brings the "
        "NIC's own gain along.", found)


@claim("C24", "The remote cache and the graph algorithm bring most of the full system's gain in "
              "inference.", "fig22")
def most(book: Book) -> Verdict:
    found = {"ga": book.speedups(book.graph)} | {
        part: book.speedups(part, base="nic") for part in ("rc", "lc", "sc")}
    means = {name: mean(values) for name, values in found.items()}
    known = {name: value for name, value in means.items() if value is not None}
    agrees = None if len(known) < 4 else (
        min(known["ga"], known["rc"]) >= max(known["lc"], known["sc"]))
    nic = mean(book.speedups("nic"))
    alone = "" if nic is None else f" The NIC alone brings {nic:.2f}x over {book.base}."
    return Verdict(f"GA over {book.base}, the others over the NIC alone: {times(means)}", agrees,
                   f"Means over data sets.{alone}", found)


def _with_size(book: Book, metric: str, system: str, cache: str, name: str,
               rises: bool) -> Verdict:
    """Judge whether a metric only rises, or only falls, with the size of a cache."""
    found, ways = {}, []
    for dataset in book.setting.datasets:
        # A cache that is off has no hit rate.
        shares = [share for share in book.setting.sizes(dataset) if share or not rises]
        values = [book.value(metric, dataset, system, **{cache: share}) for share in shares]
        found[dataset] = dict(zip(map(str, shares), values))
        way = steps_of(values)
        ways.append(None if way is None else way[not rises] and values[0] != values[-1])
    ends = "; ".join(f"{dataset} {_number(ends[0])} to {_number(ends[-1])}" for dataset, ends in (
        (dataset, list(values.values())) for dataset, values in found.items()))
    agrees = None if None in ways else all(ways)
    return Verdict(f"{name}: {ends}", agrees,
                   f"From the smallest to the largest size of the sweep, at each step not "
                   f"{'falling' if rises else 'rising'}.", found)


def _number(value: float | None) -> str:
    if value is None:
        return "n/a"
    return f"{value:,.0f}" if value > 1 else f"{value:.3f}"


INFERENCE = (graph, local_cache, local_hits, remote_cache, local_hits_behind_remote, computation,
             by_dataset, full, scaling, together, most)
"""The claims about inference."""
