import io
from types import SimpleNamespace

from rich.console import Console

from sim.cli.progress import JobLines, PointBar, SampleCount


def test_lines_where_there_is_no_terminal():
    out = io.StringIO()
    with SampleCount(Console(file=out)) as progress:
        for done in (1, 16_383, 16_384, 20_000, 70_000, 80_000, 131_072):
            progress(done)
    assert out.getvalue() == "16,384 samples\n70,000 samples\n131,072 samples\n"


def test_one_place_on_a_terminal():
    out = io.StringIO()
    with SampleCount(Console(file=out, force_terminal=True)) as progress:
        for done in range(16_384, 200_000, 10_000):
            progress(done)
    # The status may show any text in its one line, which it clears; doublings have no lines of
    # their own.
    assert out.getvalue().count("samples") <= 2


def test_a_job_that_reports_often_prints_its_first_line_and_one_in_half_a_minute():
    out, now = io.StringIO(), iter((0.0, 1.0, 29.9, 30.0, 31.0, 32.0))
    lines = JobLines(Console(file=out), lambda: next(now))
    for done, line in ((0, "a: 1"), (0, "a: 2"), (0, "a: 3"), (0, "a: 4"), (0, "a: 5"), (1, "b")):
        lines(done, 2, line)
    assert out.getvalue() == "0 of 2: a: 1\n0 of 2: a: 4\n1 of 2: b\n"


def test_the_first_point_says_nothing_of_the_time_that_others_take(monkeypatch):
    """The first point also compiles NICs, which takes minutes."""
    out, now = io.StringIO(), iter((0.0, 600.0, 640.0))
    monkeypatch.setattr(
        "sim.cli.progress.time", SimpleNamespace(monotonic=lambda: next(now)))
    bar = PointBar(Console(file=out))
    for done in range(3):
        bar(done, 10, done / 10)
    assert out.getvalue().splitlines() == [
        "0 of 10 points", "1 of 10 points", "2 of 10 points, about 5 min left"]
