"""The report of a PyTorch program as a folder: a page, and the counts of each mini-batch."""

import csv
import io
from importlib.resources import files
from pathlib import Path
from shlex import join

import jinja2
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gen.base.files import write_whole
from host.systems import PHASES
from sim.files.pictures import write_picture
from sim.page.html import embedded

__all__ = ["write_report"]

_PHASES = {
    "input_all_to_all": "keys to the owners of their rows",
    "embedding_lookup": "rows read", "embedding_all_to_all": "vectors back",
    "irregular": "interaction, keys by table, vectors to bags", "mlp": "MLPs, forward and back",
    "backward_all_to_all": "gradients to the owners", "all_reduce": "gradients of the MLPs",
    "overhead": "calls and waits of the host", "wait": "for busy resources"}
_ABOUT = {
    "EN": "NICs without the host in the loop: one graph and one wait per mini-batch.",
    "FS": "The paper's full system: NICs with caches; each key of a mini-batch is looked up once.",
    "bl-tuned": "GPUs and NCCL with tuned software, without these NICs.",
    "bl-paper": "The paper's GPU baseline, without these NICs."}


def write_report(result: dict, folder: str) -> None:
    """Write ``index.html``, its pictures and ``steps.csv`` to an existing folder.

    result: from :func:`sim.torch.report.result.result_of`.
    """
    place = Path(folder)
    pictures = {}
    for kind, times in result["systems"].items():
        if times["rows"]:
            picture = place / f"{kind}.png"
            _draw(times["rows"], picture)
            pictures[kind] = embedded(picture)
    text = io.StringIO()
    if result["steps"]:
        rows = csv.DictWriter(text, result["steps"][0])
        rows.writeheader()
        rows.writerows(result["steps"])
    write_whole(place / "steps.csv", text.getvalue())
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True,
                                     undefined=jinja2.StrictUndefined)
    template = files("sim.torch.report") / "page.html"
    script = result["script"] or "the program"
    write_whole(place / "index.html", environment.from_string(
        template.read_text(encoding="utf-8")).render(result | {
            "name": Path(script).name, "command": join([script, *result["arguments"]]),
            "source": "the RTL of the NICs" if result["values"]["source"] == "rtl" else
                      "the bit-exact numerics",
            "phases": {phase: _PHASES[phase] for phase in PHASES}, "pictures": pictures,
            "about_systems": _ABOUT, "verdicts": {
                kind: verdict(times["rows"], result["options"]["system"])
                for kind, times in result["systems"].items() if times["rows"]}}))


def verdict(rows: list[dict], system: str) -> dict:
    """Compare a system with the fastest system without NICs.

    Members
    -------
    best, best_us: name and interval of the fastest system without NICs.
    loses: True if ``system`` is slower.
    text: the comparison in words.
    """
    own = next(row for row in rows if row["system"] == system)["interval_us"]
    best_us, best = min((row["interval_us"], row["system"]) for row in rows
                        if row["system"].startswith("bl-"))
    said = f"{system} takes {own:,.0f} us per mini-batch"
    if system != best:
        said += f", {best} {best_us:,.0f} us: {best_us / own:,.2f} times as fast"
    return {"best": best, "best_us": best_us, "loses": own > best_us, "text": f"{said}."}


def _draw(rows: list[dict], path: Path) -> None:
    """Draw the phases of a mini-batch alone, a bar for each system."""
    figure = Figure(figsize=(8, 0.6 * len(rows) + 1.6), layout="constrained")
    axes = figure.add_subplot()
    names = [row["system"] for row in rows]
    left = [0.0] * len(rows)
    for number, phase in enumerate(PHASES):
        widths = [row["phases_us"][phase] for row in rows]
        if any(widths):
            axes.barh(names, widths, left=left, label=phase.replace("_", " "), color=f"C{number}")
        left = [before + width for before, width in zip(left, widths)]
    axes.invert_yaxis()
    axes.set_xlabel("microseconds of a mini-batch alone")
    figure.legend(loc="outside upper center", ncols=4, fontsize="small")
    FigureCanvasAgg(figure)
    write_picture(figure, path, dpi=100)
