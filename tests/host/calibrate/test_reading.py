"""Readings keep their spread; books keep their order, absences, and files."""

import csv
import json

import pytest

from host.calibrate.reading import Absent, Book, Reading, number, reading


def _book():
    book = Book({"gpu": "x"})
    book.add(reading("graph.1.us", [3.0, 1.0, 2.0], "a graph"))
    book.add(number("device.multiprocessors", 72, "said"))
    book.add(Absent("launch", "no driver"))
    return book


def test_a_reading_is_the_median_and_tells_the_spread():
    values = [float(value) for value in range(101)]
    assert reading("a.b_us", values, "how") == Reading("a.b_us", 50.0, 10.0, 90.0, 101, "us", "how")
    assert reading("a", [1 / 3], "how").value == 0.333333


def test_what_is_read_again_takes_the_place_of_what_was():
    book = _book()
    book.add(number("launch", 5, "now"))
    assert "launch" in book and book["launch"] == 5 and not book.missing
    book.add(Absent("launch", "gone"))
    assert "launch" not in book and book.missing == {"launch": "gone"}
    book.add(number("graphs.1.us", 1, "another item"))
    book.add(Absent("graph.driver", "none"))
    book.forget("graph")
    assert set(book.readings) == {"device.multiprocessors", "graphs.1.us"}
    assert set(book.missing) == {"launch"}


def test_a_book_is_read_as_it_was_written(tmp_path):
    book = _book()
    table, whole = book.write(tmp_path / "gpu.x_readings")
    assert (table.name, whole.name) == ("gpu.x_readings.csv", "gpu.x_readings.json")
    assert Book.read(whole) == book
    rows = list(csv.DictReader(table.open()))
    assert [row["name"] for row in rows] == ["graph.1.us", "device.multiprocessors"]
    assert rows[0] == {"name": "graph.1.us", "value": "2.0", "low": "1.2", "high": "2.8",
                       "count": "3", "unit": "us", "about": "a graph"}
    assert json.loads(whole.read_text())["schema"] == 1


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"machine": {}, "readings": [{}]}'])
def test_other_files_are_no_books(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"x\.json has no readings"):
        Book.read(path)
