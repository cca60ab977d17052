"""What the page of results shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from host.placement.deal import described
from sim.evaluation.fields import DEPTHS, devices_of
from sim.evaluation.setting import Setting
from sim.evaluation.store import Results
from sim.experiments.claims.headlines import in_words
from sim.experiments.figures.captions import mini_batches
from sim.experiments.figures.estimate import CONFIDENCE
from sim.experiments.figures.section import Section

__all__ = ["Shown", "content_of"]


@dataclass(frozen=True)
class Shown:
    """A figure or table that is written, as the page shows it.

    Members
    -------
    name, title, about: of the exhibit. command: that makes it again.
    pictures: where they are, none for a table. sections: of the page, above the pictures.
    """

    name: str
    title: str
    about: str
    command: str
    pictures: list[Path]
    sections: list[Section]


def content_of(found: dict, setting: Setting, results: Results, shown: Sequence[Shown]) -> dict:
    """Return the fields of ``page.html``.

    ``found``: what ``claims.json`` holds, see :func:`sim.experiments.reproduce.reproduce`.
    """
    claims = found["claims"]
    agree, differ = (sum(row["agrees"] is value for row in claims) for value in (True, False))
    notes = sorted({note for outcome in results.values() if outcome.metrics
                    for note in outcome.metrics.get("notes") or ()})
    return {
        "setting": _setting_lines(found, setting),
        "headlines": [row | dict(zip(("mean", "each"), in_words(row)))
                      | {"system": row["system"].upper()} for row in found["headlines"]],
        "claims": claims,
        "tally": f"Of {len(claims)} claims {agree} agree, {differ} do not, "
                 f"{len(claims) - agree - differ} were not measured.",
        "sections": [section for each in shown for section in each.sections],
        "figures": [each for each in shown if each.pictures],
        "failed": found["failed"], "notes": notes}


def _seeds(found: dict, setting: Setting) -> str:
    """Return in words what is measured with which seeds."""
    if len(setting.seeds) == 1:
        return f"{setting.seed}, of everything: no intervals"
    seeded = ", ".join(found["seeded"]) or "no figure"
    said = (f"{', '.join(map(str, setting.seeds))} of headlines and of {seeded}, whose means are "
            f"given with Student's interval of {CONFIDENCE:.0%} over the seeds; {setting.seed} of "
            "the other figures. An interval has no width where what binds, such as the host's "
            "calls, does not depend on the samples")
    files = [name for name in setting.datasets if setting.source(name).data]
    return said + (f"; the samples of {', '.join(files)} come from files and are the same with "
                   "every seed" if files else "")


def _setting_lines(found: dict, setting: Setting) -> list[tuple[str, str]]:
    return [
        ("data", "; ".join(f"{name}: {source}" for name, source in found["sources"].items())),
        ("cluster", f"{setting.nodes} nodes where a figure does not sweep them, {setting.gpu}, "
                    f"{_gbit_s(setting):g} Gb/s through one switch, MTU 1,500"),
        ("placement", f"{setting.placement}: {described(setting.placement)}; hashed where nodes "
                      "exceed tables"),
        ("mini-batch", f"{mini_batches(setting)} samples over all nodes, dealt in contiguous "
                       "shares"),
        ("graph algorithm", "window of 16 mini-batches, over the global stream"),
        ("caches", "each of 10 % of the unique keys that reach it; LRU, float32; requester-side "
                   f"merge {_merge(setting)}, dedupe on"),
        *([("besides", setting.in_words())] if setting.every else []),
        ("measured", f"{setting.measured} mini-batches after {setting.warmup} of warm-up"),
        ("sweeps", "; ".join(
            f"{name}: {setting.sweep(name)['measured']} mini-batches after as many, where cache "
            f"sizes or nodes are swept, every other size, {_nodes_swept(setting, name)} nodes"
            for name, _ in setting.swept if name in setting.datasets)
            or "as many"),
        ("seeds", _seeds(found, setting)),
        ("in flight", f"in inference the number of {', '.join(map(str, DEPTHS))} mini-batches with "
         "which a system is fastest, 1 in training"),
        ("NIC fidelity", setting.fidelity + (
            ", and rtl at the diamonds" if setting.markers else "")),
        ("judged on", "inference: time per mini-batch in steady state; training: samples per "
                      "second, the MLPs' all-reduce included"),
        ("points", f"{found['points']}, of which {len(found['failed'])} failed"),
        ("made with", f"EmberNIC {found['version']}, NumPy {found['numpy']}, {found['blas']}; "
                      + ", ".join(f"{name} {digest[:8]}"
                                  for name, digest in found["profiles"].items()))]


def _gbit_s(setting: Setting) -> float:
    """Return the rate of a link."""
    point = setting.point(setting.datasets[0], "bl-paper", software=setting.softwares[0])
    return devices_of(point.cluster).network.bandwidth_gbit_s


def _merge(setting: Setting) -> str:
    return "on" if "requester_merge=true" in dict(setting.every).get("settings", ()) else "off"


def _nodes_swept(setting: Setting, dataset: str) -> str:
    *others, last = setting.numbers_of_nodes(dataset)
    return f"{', '.join(map(str, others))} and {last}" if others else str(last)
