"""Rows of the compiled twins: each twin is compared with its reference on a whole run."""

from dataclasses import replace

import pytest

from host.wire.rows import row_answers
from sim.bench import twins
from sim.bench.twins import TWINS, twin_row


@pytest.mark.thorough
@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_a_row_of_each_twin(monkeypatch, twin):
    monkeypatch.setattr(twins, "TURNS", 1)
    row = twin_row(twin, samples=256, nodes=2)
    assert row.value > 0 and row.target == 1.5 and twin.modules in row.note


@pytest.mark.thorough
def test_a_reference_that_gives_something_else_is_found(monkeypatch):
    def wrong_rows(model, seed, node, payload_beats):
        answer = row_answers(model, seed, node, payload_beats)

        def with_a_wrong_bit(records, step):
            packets = answer(records, step)
            packets[-1][-1, 3] ^= 1
            return packets

        return with_a_wrong_bit

    monkeypatch.setattr(twins, "TURNS", 1)
    other = replace(TWINS[-1], reference=lambda backend: replace(backend, rows=wrong_rows))
    with pytest.raises(RuntimeError, match="gave different results"):
        twin_row(other, samples=64, nodes=2)
