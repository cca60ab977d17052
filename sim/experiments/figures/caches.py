"""Figures 16, 18 to 21, 23 and 24: what grows with the size of a cache."""

from sim.experiments.figures.figure import Bar, Entry, Figure, Metric, cases, speedups
from sim.experiments.points.setting import BASES, Setting

__all__ = ["FIG16", "FIG18", "FIG19", "FIG20", "FIG21", "FIG23", "FIG24"]

_LOCAL = "local cache (% of the unique keys that reach it)"
_REMOTE = "remote cache (% of the unique keys that reach it)"


def _sizes(lines: tuple[Bar, ...], cache: str, workload: str = "inference"):
    """Return the entries of lines over the sizes of ``cache``, the other one as it is always."""
    def entries(setting: Setting) -> list[Entry]:
        return [Entry(dataset, label, 100 * share, f"{label} {100 * share:g}%",
                      setting.point(dataset, system, workload, software, **{cache: share}),
                      tuple((base, setting.point(dataset, base, workload, software,
                                                 **setting.sweep(dataset))) for base in BASES))
                for dataset, software in cases(setting)
                for label, system in lines for share in setting.sizes(dataset)]
    return entries


def _one_profile(entries):
    """Leave out the profiles but the first: hits and lookups do not depend on them."""
    def of_first(setting: Setting) -> list[Entry]:
        return [entry for entry in entries(setting)
                if entry.point.software == setting.softwares[0]]
    return of_first


def _hits(cache: str) -> tuple[Metric, ...]:
    return (Metric(f"{cache}_hit_rate", f"{cache}.hit_rate", "1"),
            Metric(f"{cache}_hit_rate_unique", f"{cache}.hit_rate_unique", "1"))


FIG16 = Figure(
    "fig16", "Inference: speedup over the size of the local cache",
    _sizes((("LC", "lc"), ("GA+LC", "ga+lc")), "local_cache"), speedups("inference"), "lines",
    _LOCAL, "speedup over BL, time per mini-batch", "share", claims=("C1", "C2"))

FIG18 = Figure(
    "fig18", "Inference: hit rate of the local cache",
    _one_profile(_sizes((("LC", "lc"), ("GA+LC", "ga+lc")), "local_cache")),
    _hits("local_cache"), "lines", _LOCAL, "hit rate per access", "share",
    about="A repeat inside a mini-batch counts as a hit; the CSV has the rate without repeats.",
    claims=("C3",))

FIG19 = Figure(
    "fig19", "Inference: speedup over the size of the remote cache",
    _sizes((("RC", "rc"), ("GA+RC", "ga+rc")), "remote_cache"), speedups("inference"), "lines",
    _REMOTE, "speedup over BL, time per mini-batch", "share", claims=("C4",))

FIG20 = Figure(
    "fig20", "Inference: remote lookups saved by the remote cache",
    _one_profile(_sizes((("RC", "rc"), ("GA+RC", "ga+rc")), "remote_cache")),
    (Metric("saved_lookups", "saved_lookups", "lookups"),
     *_hits("remote_cache")), "lines", _REMOTE, "lookups saved", "share", claims=("C4",))

FIG21 = Figure(
    "fig21", "Inference: hit rate of the local cache over the size of the remote cache",
    _one_profile(_sizes((("LC+RC", "lc+rc"), ("GA+LC+RC", "ga+lc+rc")), "remote_cache")),
    _hits("local_cache"), "lines", _REMOTE, "hit rate per access of the local cache", "share",
    claims=("C5",))

FIG23 = Figure(
    "fig23", "Training: speedup over the size of the local cache",
    _sizes((("LC", "lc"), ("GA+LC", "ga+lc"), ("LC+SC", "lc+sc")), "local_cache", "training"),
    speedups("training"), "lines", _LOCAL, "speedup over BL, samples per second", "share",
    claims=("C9", "C10"))

FIG24 = Figure(
    "fig24", "Training: hit rate of the local cache",
    _one_profile(_sizes((("LC", "lc"), ("GA+LC", "ga+lc")), "local_cache", "training")),
    _hits("local_cache"), "lines", _LOCAL, "hit rate per access", "share", claims=("C10",))
