"""Pages: valid charts for Plotly, every value and text on the page, and PNG files."""

from html.parser import HTMLParser

import pytest
from plotly.graph_objects import Figure as PlotlyFigure

from sim.page.chart import Axis, Series, Shade
from sim.page.content import Page, Table
from sim.page.html import render
from sim.page.png import canvas_of, write_png
from sim.page.rows import COLUMNS, Row, csv_text
from sim.page.traces import figure_of
from tests.browser import WIDTHS, looked, needs_chromium
from tests.sim.page.sample import BARS, CELLS, CHARTS, LINES, PAGE, PLANE


class _Reader(HTMLParser):
    """Reads tags, addresses, and the text outside scripts."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data):
        if self.tags and self.tags[-1] not in ("script", "style"):
            self.text += data


@pytest.mark.every
@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
def test_plotly_accepts_every_panel_with_its_values(chart):
    for panel in chart.panels:
        figure = figure_of(panel)
        found = PlotlyFigure(figure)  # raises for an unknown or invalid member
        for trace, series in zip(found.data, panel.series, strict=True):
            assert (list(trace.x), list(trace.y)) == (
                [{"a\n<1>": "a<br>&lt;1&gt;"}.get(x, x) for x in series.x],
                [{"<512>": "&lt;512&gt;"}.get(y, y) for y in series.y])


def test_marks_of_a_chart():
    lines = figure_of(LINES.panels[0])
    first, marks = lines["data"]
    assert first["error_y"]["array"] == pytest.approx([0.1, 0.5, 0])
    assert first["error_y"]["arrayminus"] == pytest.approx([0.1, 0.5, 0])
    assert (first["mode"], marks["mode"]) == ("lines+markers", "markers")
    assert lines["layout"]["xaxis"]["type"] == "log" and lines["layout"]["shapes"][0]["y0"] == 1
    bars, ticks = figure_of(BARS.panels[0])["data"]
    assert bars["orientation"] == "h" and "<br>nic" in ticks["customdata"][0]
    assert "<i>" not in bars["name"] and "&lt;i&gt;" in bars["name"]
    points, line = figure_of(PLANE.panels[0])["data"]
    assert points["marker"]["color"] == [-0.8, 0.1, 0.9] and line["mode"] == "lines"
    assert line["line"]["dash"] == "dot" and lines["data"][0]["line"]["dash"] == "solid"


def test_cells_have_their_colours_and_labels_and_the_panel_its_height():
    [cells] = figure_of(CELLS.panels[0])["data"]
    assert (cells["z"], cells["zmin"], cells["showscale"]) == ([0.1, 0.5, 0.9], 0, False)
    assert cells["text"] == ["0.1x", "0.5x", "&lt;0.9x&gt;"]
    [axes] = canvas_of(CELLS).axes
    assert [text.get_text() for text in axes.texts] == ["0.1x", "0.5x", "<0.9x>"]
    at = {(bar.get_x(), bar.get_y() + 0.5): bar.get_facecolor() for bar in axes.patches}
    assert list(at) == [(-0.5, 0), (0.5, 0), (-0.5, 1)] and len(set(at.values())) == 3
    assert canvas_of(CELLS).get_figheight() == 1.3 + 2
    assert 'style="height: 200px"' in render(PAGE)


def test_a_page_starts_with_the_answer_and_ends_with_the_setting():
    page = render(PAGE)
    read = _Reader(page)
    assert not read.addresses and page.count("Plotly.newPlot") == 1
    order = ("A <title>", "en is faster than <bl-tuned>.", "us: microseconds.", "Systems <s>",
             "1,013.1", "Rows <r>.", "us: micro<seconds>.", "one <1>", "three", "draw lines",
             "draw plane", "model <m>", "kaggle <k>")
    at = [read.text.rindex(part) for part in order]
    assert at == sorted(at)
    assert read.tags.count("figure") == len(CHARTS) and "em" in read.tags
    assert not {"b>", "i>", "s", "k"} & set(read.tags)
    assert page.count('class="plot"') == sum(len(chart.panels) for chart in CHARTS)


def test_a_page_without_charts_is_small():
    page = render(Page("A title", "An answer.", None, [], [("a", "b")]))
    assert len(page) < 10_000 and "<script></script>" not in page


def test_rows_with_another_number_of_cells_or_values_are_rejected():
    with pytest.raises(ValueError, match="row must have 2 cells, not 1"):
        Table(["a", "b"], [["x"]])
    with pytest.raises(ValueError, match="labels must have 2 values, as x, not 1"):
        Series(name="a", x=[1, 2], y=[1, 2], labels=["a"])
    with pytest.raises(ValueError, match="kind must be one of bar, line, point, cell, not 'pie'"):
        Series(name="a", kind="pie", x=[1], y=[1])
    with pytest.raises(ValueError, match="axis must be linear and have bounds"):
        Shade(Axis("ratio"))


@pytest.mark.every
@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
def test_a_png_has_every_value_and_the_same_bytes_again(chart, tmp_path):
    for name in ("one.png", "two.png"):
        write_png(chart, tmp_path / name)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
    axes = [each for each in canvas_of(chart).axes if each.get_label() != "<colorbar>"]
    assert [each.get_title() for each in axes] == [panel.title for panel in chart.panels]
    for drawn, panel in zip(axes, chart.panels):
        marks = len(drawn.patches) + sum(
            len(line.get_xdata()) for line in drawn.lines
            if str(line.get_label())[0] != "_") + sum(
            len(each.get_offsets()) for each in drawn.collections if len(each.get_offsets()) > 1)
        values = sum(None not in pair for each in panel.series for pair in zip(each.x, each.y))
        assert marks == values


def test_an_interval_is_drawn_in_a_png():
    whiskers = [(line[0][1], line[-1][1]) for each in canvas_of(LINES).axes[0].collections
                for line in each.get_segments()]
    assert (1.5, 2.5) in whiskers


def test_rows_as_csv():
    row = Row(workload="kaggle", cluster="h100", mini_batch=128, profile="tuned", fidelity="model",
              system="en", metric="interval_us", value=1.5, unit="us")
    assert csv_text([row]).splitlines() == [
        ",".join(COLUMNS), "kaggle,h100,128,tuned,model,en,interval_us,1.5,,,us"]


@needs_chromium
@pytest.mark.thorough
def test_a_page_in_a_browser(tmp_path):
    page = tmp_path / "index.html"
    page.write_text(render(PAGE))
    looks = looked(page, tmp_path)
    assert [look.width for look in looks] == list(WIDTHS)
    for look in looks:
        assert (look.wrong, look.overflow, look.wide) == ([], 0, [])
        assert look.plots == look.drawn == 9
        assert look.columns == [["bl-tuned", "en", "fs"], ["15.3", "1,013.1", "n/a"],
                                ["no", "yes", "n/a"]]
        assert "13.1 us" in look.hovers[0] and "0.9 to 1.1" in look.hovers[1]


@needs_chromium
@pytest.mark.thorough
def test_the_browser_finds_errors_overflow_and_missing_marks(tmp_path):
    page = tmp_path / "index.html"
    page.write_text(render(PAGE).replace(
        "<h2>Setting</h2>", '<div style="width: 3000px">x</div><script>nothing()</script>'
        '<img src="nowhere.png">').replace('"type": "bar"', '"type": "bar", "visible": false'))
    for look in looked(page, tmp_path):
        assert any("nothing" in each for each in look.wrong) and look.images == [False]
        assert look.overflow > 1000 and "DIV" in look.wide and look.drawn < look.plots
