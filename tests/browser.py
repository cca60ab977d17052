"""Pages in headless Chromium, at the widths of a desktop and of a phone."""

import html
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

__all__ = ["WIDTHS", "Look", "looked", "needs_chromium"]

WIDTHS = (1280, 400)
"""Widths of the page, pixels."""

_CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
                 None)

needs_chromium = pytest.mark.skipif(
    _CHROMIUM is None, reason="the test requires Chromium, Debian's package chromium")

_ERRORS = """<script>
window.wrong = [];
addEventListener("error", event => wrong.push(String(event.message || event.target.src)), true);
addEventListener("unhandledrejection", event => wrong.push(String(event.reason)));
</script>"""

_PROBE = """<script>
addEventListener("load", () => setTimeout(() => {
  const plots = [...document.querySelectorAll(".plot")];
  const drawn = plot => plot.querySelectorAll(".point, .trace, .errorbar, .hm image").length > 0;
  const hovered = plot => {
    const at = plot.data.findIndex(trace => trace.x.some(value => value !== null));
    const point = plot.data[at].type === "heatmap" ? [0, 0]
      : plot.data[at].x.findIndex(value => value !== null);
    try { Plotly.Fx.hover(plot, [{curveNumber: at, pointNumber: point}]); }
    catch (error) { wrong.push(String(error)); }
    return [...plot.querySelectorAll(".hovertext")].map(each => each.textContent).join(" ");
  };
  const table = document.querySelector("th.sorts")?.closest("table");
  const columns = [];
  if (table) for (const head of table.querySelectorAll("th.sorts")) {
    head.click();
    columns.push([...table.rows].slice(1).map(row => row.cells[head.cellIndex].textContent));
  }
  const page = document.documentElement;
  const wide = [...document.querySelectorAll("body *")].filter(each =>
    each.getBoundingClientRect().right > page.clientWidth + 1
    && !each.closest("table, svg, .js-plotly-plot")).map(each => each.tagName);
  parent.postMessage({
    width: innerWidth, overflow: page.scrollWidth - page.clientWidth, wide, wrong, columns,
    plots: plots.length, drawn: plots.filter(drawn).length, hovers: plots.map(hovered),
    images: [...document.images].map(each => each.complete && each.naturalWidth > 0),
    text: document.body.innerText,
  }, "*");
}, 500));
</script>"""

_OUTER = """<!DOCTYPE html><body><script>
const found = [];
addEventListener("message", event => {
  found.push(event.data);
  if (found.length === %d) {
    const place = document.createElement("pre");
    place.id = "found";
    place.textContent = JSON.stringify(found);
    document.body.append(place);
  }
});
</script>%s"""


@dataclass(frozen=True)
class Look:
    """A page in the browser.

    Members
    -------
    width: width in pixels. overflow: pixels that the page is wider. wide: tags of elements beyond
        the right edge. wrong: errors of scripts, and resources that failed to load.
    plots, drawn: charts, and charts with at least one mark. hovers: text shown at the first value
        of each chart.
    images: whether each image is shown.
    columns: cells of each column of the first table that sorts, after a click on its header.
    text: visible text.
    """

    width: int
    overflow: int
    wide: list[str]
    wrong: list[str]
    plots: int
    drawn: int
    hovers: list[str]
    images: list[bool]
    columns: list[list[str]]
    text: str


def looked(page: str | Path, folder: Path) -> list[Look]:
    """Return the page at each width. ``folder``: for temporary files.

    Chromium has no narrow windows, so frames have the widths.
    """
    text = Path(page).read_text(encoding="utf-8")
    assert text.count("<head>") == 1 and text.rstrip().endswith("</html>")
    (folder / "probed.html").write_text(
        text.replace("<head>", f"<head>{_ERRORS}").replace("</html>", f"{_PROBE}</html>"))
    frames = "".join(f'<iframe src="probed.html" style="width: {width}px; height: 4000px; '
                     'border: 0"></iframe>' for width in WIDTHS)
    outer = folder / "outer.html"
    outer.write_text(_OUTER % (len(WIDTHS), frames))
    assert _CHROMIUM is not None
    done = subprocess.run(
        [_CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
         f"--user-data-dir={folder / 'profile'}", "--host-resolver-rules=MAP * ~NOTFOUND",
         "--virtual-time-budget=20000", "--window-size=1400,4000", outer.as_uri()],
        capture_output=True, text=True, timeout=120)
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr
    looks = [Look(**each) for each in json.loads(html.unescape(found[1]))]
    return sorted(looks, key=lambda look: -look.width)
