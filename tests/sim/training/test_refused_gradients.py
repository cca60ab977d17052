"""Gradient messages that NICs reject: dropped, answered, counted, and reported."""

import json
from itertools import chain

import numpy as np
import pytest

from host.wire.gradients import gradient_packets
from sim.cli.main import main
from sim.training.train import Training, train
from tests.sim.shown import complaints
from tests.sim.training.compiled_nics import NIC, options, write

STEP, NODE = 1, 1


def packets(table: int, row: int, step: int) -> list[np.ndarray]:
    """Return packets of a good bag and of a bag with the key of ``table`` and ``row``."""
    return gradient_packets(np.array([0, table]), np.array([1, row]), np.array([1, 1]),
                            np.ones((2, 16), np.float32), node=NODE, step=step, payload_beats=24)


def bad() -> list[np.ndarray]:
    """Return packets for missing tables and rows, too short, too long, and of other steps."""
    whole, = packets(2, 1, STEP)
    return [*chain(packets(4, 0, STEP), packets(3, 1 << 20, STEP), packets(2, 2, STEP - 1)),
            whole[:-1], np.concatenate((whole, np.zeros((3, 16), np.uint32))),
            *packets(2, 2, STEP + 1)]


@pytest.mark.thorough
def test_bad_gradients_are_dropped_answered_counted_and_said(tmp_path, monkeypatch, capsys):
    path, found = write(tmp_path), tmp_path / "t.json"
    execute = Training.execute
    monkeypatch.setattr(Training, "execute", lambda self, *given, **named: execute(
        self, *given, **named, injected={(STEP, NODE): bad()}))
    with pytest.raises(SystemExit) as end:
        main(["train", "--config", "tiny", "--model", path, "--nodes", "2", "--samples", "12",
              "--mini-batch", "4", "--placement", "row", "--json", str(found),
              *chain.from_iterable(("--set", setting) for setting in NIC)])
    assert end.value.code == 1
    assert complaints(capsys.readouterr().err) == [
        "sim: 6 messages to NICs were refused: 2 for LENGTH, 1 for ROW, 2 for STEP, 1 for TABLE"]
    result = json.loads(found.read_text())
    assert sorted((error["node"], error["step"], error["status"]) for error in result["errors"]
                  ) == [(NODE, STEP - 1, "STEP"), (NODE, STEP, "LENGTH"), (NODE, STEP, "LENGTH"),
                        (NODE, STEP, "ROW"), (NODE, STEP, "TABLE"), (NODE, STEP + 1, "STEP")]
    assert [node["gradient_check.dropped"] for node in result["counters"]] == [0, 6]
    # They changed no row and did not disturb other messages.
    assert result["complete"] and result["bit_identical"] and result["steps"] == 3
    expected = train(options(path, samples=12, fidelity="model"))
    assert result["weights_sha256"] == expected["weights_sha256"]
    assert result["loss"] == expected["loss"]
