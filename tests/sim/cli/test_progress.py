import io

from rich.console import Console

from sim.cli.progress import SampleCount


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
    # Whatever the status shows in its one line, and clears; no line for each doubling.
    assert out.getvalue().count("samples") <= 2
