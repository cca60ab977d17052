"""The journal: rows are on disk when finished, a later call resumes, requests are never mixed."""

import json
import os
import random
import signal
import subprocess
import sys

import pytest

from sim.files import journal as module
from sim.files.journal import Journal
from sim.files.outputs import check_earlier_results

SCHEMA = "embernic/test/1"
REQUEST = {"config": "tiny", "sizes": (1, 2)}


def _read(path) -> dict:
    return json.loads(path.read_text())


def _unfinished(path, request=REQUEST, schema=SCHEMA) -> None:
    journal = Journal(str(path), schema, request)
    journal.add("a", {"value": 1.5})
    journal.add("b", {"value": None, "name": "b"})


def test_every_row_is_on_the_disk(tmp_path):
    path = tmp_path / "rows.json"
    journal = Journal(str(path), SCHEMA, REQUEST)
    assert not path.exists() and dict(journal.finished) == {}
    for number in range(3):
        journal.add(f"row {number}", {"value": number})
        found = _read(path)
        assert found["complete"] is False and found["schema"] == SCHEMA
        assert found["rows"] == [{"name": f"row {n}", "value": n} for n in range(number + 1)]
    result = journal.finish({"total": 3})
    assert result == _read(path)
    assert result["complete"] is True and result["total"] == 3 and len(result["rows"]) == 3
    assert result["request"].items() >= {"config": "tiny", "sizes": [1, 2]}.items()
    assert [file.name for file in tmp_path.iterdir()] == ["rows.json"]


def test_the_same_request_resumes(tmp_path):
    path = tmp_path / "rows.json"
    _unfinished(path)
    journal = Journal(str(path), SCHEMA, REQUEST)
    assert journal.resumed == 2
    assert dict(journal.finished) == {"a": {"name": "a", "value": 1.5},
                                      "b": {"name": "b", "value": None}}
    journal.add("c", {"value": 3})
    assert [row["name"] for row in journal.finish()["rows"]] == ["a", "b", "c"]


@pytest.mark.parametrize(("request_", "schema", "said"), [
    ({**REQUEST, "config": "kaggle"}, SCHEMA, "config was 'tiny', now 'kaggle'"),
    ({"config": "tiny"}, SCHEMA, "sizes was [1, 2], now None"),
    ({**REQUEST, "seed": 1}, SCHEMA, "seed was None, now 1"),
    (REQUEST, "embernic/other/1", "schema 'embernic/test/1', not 'embernic/other/1'"),
])
def test_another_request_is_refused(tmp_path, request_, schema, said):
    path = tmp_path / "rows.json"
    _unfinished(path)
    before = path.read_text()
    with pytest.raises(ValueError) as error:
        Journal(str(path), schema, request_)
    message = str(error.value)
    assert message.startswith(f"json {path} holds unfinished results of another request")
    assert said in message and "\n" not in message
    assert path.read_text() == before


def test_other_sources_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "rows.json"
    _unfinished(path)
    monkeypatch.setattr(module, "sources_hash", lambda: "0" * 32)
    with pytest.raises(ValueError, match="made by other sources of EmberNIC"):
        Journal(str(path), SCHEMA, REQUEST)


@pytest.mark.parametrize("text", [
    "", "not JSON", "[1, 2]", '{"value": 1}', '{"complete": true, "rows": [{"name": "a"}]}'])
def test_any_other_file_stays_until_the_first_new_row(tmp_path, text):
    path = tmp_path / "rows.json"
    path.write_text(text)
    with pytest.raises(KeyboardInterrupt) as error, Journal(str(path), SCHEMA, REQUEST) as journal:
        assert not journal.finished
        raise KeyboardInterrupt
    assert error.value.__notes__ == ["no row was finished"]
    assert path.read_text() == text
    journal.add("a", {})
    assert _read(path)["rows"] == [{"name": "a"}]


def test_rows_that_cannot_be_resumed(tmp_path):
    path = tmp_path / "rows.json"
    _unfinished(path)
    found = _read(path)
    for rows in (None, [1], [{"value": 1}], [{"name": 1}]):
        path.write_text(json.dumps(found | {"rows": rows}))
        with pytest.raises(ValueError, match="rows without names"):
            Journal(str(path), SCHEMA, REQUEST)


def test_rows_must_fit_json(tmp_path):
    path = tmp_path / "rows.json"
    journal = Journal(str(path), SCHEMA, REQUEST)
    for row in ({"value": float("nan")}, {"name": "other"}):
        with pytest.raises(ValueError):
            journal.add("a", row)
    with pytest.raises(TypeError):
        journal.add("a", {"value": object()})
    assert not journal.finished and not path.exists()
    journal.add("a", {"value": 1})
    with pytest.raises(ValueError, match="name must be new"):
        journal.add("a", {"value": 2})
    with pytest.raises(ValueError, match="extra must not hold 'rows'"):
        journal.finish({"rows": []})


def test_standard_output_gets_the_whole_result_once(capsys):
    journal = Journal("-", SCHEMA, REQUEST)
    journal.add("a", {"value": 1})
    assert capsys.readouterr().out == ""
    result = journal.finish({"total": 1})
    assert json.loads(capsys.readouterr().out) == result


def test_without_a_file_nothing_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as error, Journal(None, SCHEMA, REQUEST) as journal:
        journal.add("a", {})
        assert journal.finish()["rows"] == [{"name": "a"}]
        raise SystemExit
    assert "--json FILE" in error.value.__notes__[0]
    assert list(tmp_path.iterdir()) == [] and capsys.readouterr().out == ""


def test_an_error_gets_no_note(tmp_path):
    with pytest.raises(ValueError) as error, Journal(str(tmp_path / "a"), SCHEMA, REQUEST):
        raise ValueError("colour must be red, not 'blue'")
    assert not hasattr(error.value, "__notes__")


def test_links_and_modes_stay(tmp_path):
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_text("")
    target.chmod(0o640)
    link.symlink_to(target)
    Journal(str(link), SCHEMA, REQUEST).add("a", {})
    assert link.is_symlink() and _read(target)["rows"] == [{"name": "a"}]
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_device_stays_a_device():
    Journal("/dev/null", SCHEMA, REQUEST).add("a", {})
    assert not os.path.isfile("/dev/null")
    with pytest.raises(OSError, match="/dev/full"):
        Journal("/dev/full", SCHEMA, REQUEST).add("a", {})


_ENDLESS = """
import itertools, sys
from sim.files.journal import Journal
with Journal(sys.argv[1], "embernic/test/1", {}) as journal:
    for number in itertools.count(journal.resumed):
        journal.add(str(number), {"square": number**2, "filling": "x" * 10_000})
        print(number, flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="signals of POSIX")
def test_killed_at_any_moment(tmp_path):
    """Three calls in sequence, each killed while writing: every row reported as finished is in the
    file, and each call resumes where the previous one stopped."""
    path, rng, least = tmp_path / "rows.json", random.Random(3), 0
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", _ENDLESS, str(path)],
                                   stdout=subprocess.PIPE, text=True)
        assert process.stdout
        for _ in range(rng.randrange(1, 20)):
            said = int(process.stdout.readline())
            assert said >= least
        process.kill()
        rest = process.stdout.read().split("\n")[:-1]
        process.wait()
        process.stdout.close()
        least = int(rest[-1]) + 1 if rest else said + 1
        found = _read(path)
        assert found["complete"] is False and len(found["rows"]) in (least, least + 1)
        assert [row["square"] for row in found["rows"]] == [n**2 for n in range(len(found["rows"]))]


def test_a_file_too_large_for_a_journal_is_named_and_stays(tmp_path):
    path = tmp_path / "rows.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    for reads in (lambda: Journal(str(path), SCHEMA, REQUEST),
                  lambda: check_earlier_results(str(path), 8)):
        with pytest.raises(ValueError, match=f"^{path}: must have at most .* bytes, not more$"):
            reads()
    assert path.stat().st_size == 1 << 40
