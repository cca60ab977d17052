"""The speed measurements evaluate the same cycles as a run."""

import numpy as np
import pytest

from sim.bench.speed import speed_rows
from sim.engines import load
from sim.engines.compiled import CompiledEngine
from tests.sim.engine_designs import TIMEOUT, Grouper


def _busy(engine) -> None:
    engine.set_signal("bias", 7)
    engine.set_stall("groups", 1, 0.3)
    engine.write(TIMEOUT, 6, 40)
    engine.push("items", np.arange(90, dtype=np.uint32)[:, None],
                np.arange(90, dtype=np.uint64) ** 2)
    engine.run(9000)


@pytest.mark.thorough
def test_a_recording_takes_another_instance_through_the_same_states():
    model = load(Grouper(), "grouper", "verilator")
    first, second = model.instance(), model.instance()
    first.record()
    _busy(first)
    stimulus = first.recorded()
    assert first.cycles_skipped > 1000 and first.get_signal("beats") == 90
    assert len(stimulus) % first.cycles_run == 0
    second.set_signal("bias", 7)
    second.replay(stimulus)
    assert second.cycle == second.cycles_run == 0
    assert [second.get_signal(name) for name in ("beats", "mark", "idle")] == [
        first.get_signal(name) for name in ("beats", "mark", "idle")]
    # Eight of the items arrive within 50 cycles; the last may still be waiting.
    second.replay(stimulus[:len(stimulus) // first.cycles_run * 50])
    assert second.get_signal("beats") in (97, 98)


@pytest.mark.thorough
def test_recording_ends_when_it_is_taken():
    engine = load(Grouper(), "grouper", "verilator").instance()
    engine.record()
    engine.run(10)
    assert len(engine.recorded())
    engine.run(20)
    assert not len(engine.recorded())


@pytest.mark.thorough
def test_rows_of_speed(monkeypatch):
    """The measurement itself checks that the bare loop reaches the counters of the run."""
    monkeypatch.setattr("sim.bench.speed.TURNS", 2)
    lines = []
    rows = {row["name"]: row for row in speed_rows(lines.append, samples=96, nodes=2, pysim=False)}
    assert lines
    for row in rows.values():
        assert set(row) >= {"name", "value", "unit", "target", "holds", "note"}
        assert row["value"] > 0
        assert (row["holds"] is None) == (row["target"] is None) == (row["sense"] is None)
    assert rows["cluster simulation against a bare loop"]["target"] == 0.75
    assert 0 < rows["part of a cluster simulation that is serial"]["value"] < 1


@pytest.mark.thorough
def test_a_bare_loop_that_does_something_else_is_found(monkeypatch):
    monkeypatch.setattr(CompiledEngine, "replay", lambda engine, stimulus: None)
    with pytest.raises(RuntimeError, match="did not lead to the counters of the run"):
        speed_rows(samples=96, nodes=2, pysim=False)
