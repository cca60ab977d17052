"""A mini-batch in flight: its shares, records, answers, and verdict."""

import re

import numpy as np
import pytest

from host.batching.mini_batch import MiniBatch
from host.dlrm.dlrm import pooled_reference
from host.dlrm.interaction import ResultLayout, interaction
from host.model import Model
from host.samples import Samples
from host.wire.indices import MOST_INDICES
from host.wire.packets import query_records, share_end
from sim.node.step import Step, StepResult, lacking

MODEL = Model((50, 3), 16, 1, (8, 16), (4, 1))
LENGTHS = [[1, 2], [0, 1], [3, 1], [1, 1], [2, 0]]
"""Keys of the two bags of each of five samples; an empty bag also takes a slot."""
FIRST = 100
BOUNDS = [0, 4, 7, 12, 15, 19]
"""Query records before each sample: a head, and a record for each slot."""


def _samples(lengths=LENGTHS) -> Samples:
    tables = [table for sample in lengths for table, keys in enumerate(sample) for _ in range(keys)]
    rows = [place % (50, 3)[table] for place, table in enumerate(tables)]
    n = len(lengths)
    return Samples(np.zeros((n, 1), np.float32), np.zeros(n, np.float32),
                   np.array(lengths, np.int32), np.array(tables, np.int32),
                   np.array(rows, np.int64))


def _step(lengths=LENGTHS, nodes: int = 2, **given) -> Step:
    return Step.of(7, FIRST, _samples(lengths), nodes, (3, 16), **given)


@pytest.mark.parametrize(("nodes", "shares", "left"), [
    (1, [0, 5], [5]), (2, [0, 3, 5], [3, 2]), (3, [0, 2, 4, 5], [2, 2, 1]),
    (7, [0, 1, 2, 3, 4, 5, 5, 5], [1, 1, 1, 1, 1, 0, 0])])
def test_shares_follow_each_other_and_the_first_are_larger(nodes, shares, left):
    step = _step(nodes=nodes)
    assert step.shares == shares and step.left.tolist() == left
    assert (step.number, step.first, step.foreign_keys, step.unique) == (7, FIRST, 0, False)
    assert step.answers.shape == (5, 3, 16) and step.answers.dtype == np.float32
    for values in (step.answers, step.filled, step.status):
        assert len(values) == 5 and not values.any()
    assert step.dense is None and step.batch is None


def test_queries_of_a_node_are_those_of_its_share():
    step, whole = _step(), query_records(_samples(), FIRST)
    assert step.bounds.tolist() == BOUNDS and len(whole) == BOUNDS[-1]
    assert np.array_equal(step.queries(0), whole[:12])
    assert np.array_equal(step.queries(1), whole[12:])


def test_a_unique_step_ends_each_share():
    step, whole = _step(unique=True), query_records(_samples(), FIRST)
    assert step.unique
    for node, part in enumerate((whole[:12], whole[12:])):
        assert np.array_equal(step.queries(node), np.concatenate((part, share_end())))


@pytest.mark.parametrize("share", [
    lambda slots: [[1, 1], [slots - 3, 1], [1, 1]], lambda slots: [[1, 1], [1, 1], [slots - 1, 1]]])
def test_a_share_of_a_unique_step_has_a_largest_number_of_slots(share):
    """The limit applies to every share, including its last sample; a larger step cannot be
    unique."""
    fits, exceeds = _samples(share(MOST_INDICES)), _samples(share(MOST_INDICES + 1))
    assert Step.of(0, 0, fits, 2, (3, 16), unique=True).unique
    with pytest.raises(ValueError, match=f"must be at most {MOST_INDICES} .*, not "
                                         f"{MOST_INDICES + 1}: use deliver pooled"):
        Step.of(0, 0, exceeds, 2, (3, 16), unique=True)
    assert not Step.of(0, 0, exceeds, 2, (3, 16)).unique


@pytest.mark.parametrize("fresh", [False, True])
def test_numbers_are_those_of_the_input(fresh):
    plain = _step()
    assert plain.numbers.tolist() == [100, 101, 102, 103, 104] and plain.fresh
    formed = MiniBatch(_samples(), np.array([9, 4, 7, 5, 6]), fresh)
    step = _step(batch=formed)
    assert step.numbers.tolist() == [9, 4, 7, 5, 6] and step.fresh is fresh
    assert step.batch is formed


@pytest.mark.parametrize(("nodes", "shares"), [(1, 1), (2, 2), (5, 5), (7, 5)])
def test_a_step_begins_with_its_first_query_and_ends_with_its_last_result(nodes, shares):
    """Empty shares have no end."""
    step = _step(nodes=nodes)
    assert (step.started, step.finished, step.done) == (-1.0, -1.0, False)
    for node in range(shares):
        step.starts[node], step.ends[node] = 50.0 + (node - 2) ** 2, 90.0 - (node - 2) ** 2
        assert step.done == (node == shares - 1)
    nearest = min((node - 2) ** 2 for node in range(shares))
    assert (step.started, step.finished) == (50.0 + nearest, 90.0 - nearest)


def _parts(count: int, value: float) -> np.ndarray:
    return np.full((count, 16), value, np.float32)


def test_parts_fill_a_sample_in_their_order():
    step = _step()
    assert step.place(0, 2, 0, _parts(2, 1.0)) is False
    assert step.filled.tolist() == [0, 0, 2, 0, 0] and step.left.tolist() == [3, 2]
    assert step.place(0, 2, 2, _parts(1, 2.0)) is True
    assert step.filled.tolist() == [0, 0, 3, 0, 0] and step.left.tolist() == [2, 2]
    assert step.answers[2, :, 0].tolist() == [1.0, 1.0, 2.0]
    assert not step.answers[[0, 1, 3, 4]].any()
    assert step.place(1, 4, 0, _parts(3, 5.0)) is True and step.left.tolist() == [2, 1]


@pytest.mark.parametrize(("before", "first", "count", "words"), [
    (1, 0, 1, "0 to 0 after 1"), (1, 2, 1, "2 to 2 after 1"), (1, 1, 3, "1 to 3 after 1"),
    (0, 1, 1, "1 to 1 after 0"), (3, 3, 1, "3 to 3 after 3"), (0, 0, 4, "0 to 3 after 0")])
@pytest.mark.parametrize("dense", [False, True])
def test_parts_that_do_not_continue_an_answer_are_rejected(before, first, count, words, dense):
    step = _step(dense=np.zeros((5, 16), np.float32)) if dense else _step()
    if before:
        step.place(0, 1, 0, _parts(before, 1.0))
    what = "beats" if dense else "bags"
    said = re.escape(f"sample 101 got {what} {words} {what}")
    with pytest.raises(ValueError, match=f"^{said}$"):
        step.place(0, 1, first, _parts(count, 9.0))
    assert step.filled[1] == before and not (step.answers == 9.0).any()
    assert step.left.tolist() == [3 - (before == 3), 2]


@pytest.mark.parametrize(("node", "at", "good"), [
    (0, 0, True), (0, 2, True), (0, 3, False), (1, 2, False), (1, 3, True), (1, 4, True)])
@pytest.mark.parametrize("refused", [False, True])
def test_a_node_answers_the_samples_of_its_share(node, at, good, refused):
    step = _step()

    def answer() -> None:
        if refused:
            step.refuse(node, at, 4)
        else:
            step.place(node, at, 0, _parts(3, 1.0))

    if good:
        answer()
        assert step.left[node] == (3, 2)[node] - 1 and step.left[1 - node] == (2, 3)[node]
        return
    with pytest.raises(ValueError, match=f"^sample {FIRST + at} was answered at node {node}, which "
                                         f"does not hold it$"):
        answer()
    assert step.left.tolist() == [3, 2] and not step.status.any() and not step.filled.any()


def test_an_error_is_the_answer_to_a_sample():
    step = _step()
    step.place(0, 1, 0, _parts(2, 1.0))  # an error may end an answer that has begun
    step.refuse(0, 1, 4)
    assert step.status.tolist() == [0, 4, 0, 0, 0] and step.left.tolist() == [2, 2]
    step.place(0, 2, 0, _parts(3, 1.0))
    for at in (1, 2):
        with pytest.raises(ValueError, match=f"^sample {FIRST + at} was answered twice, the second "
                                             f"time with error 5$"):
            step.refuse(0, at, 5)
    assert step.status.tolist() == [0, 4, 0, 0, 0] and step.left.tolist() == [1, 2]


def _answered() -> Step:
    """Return a step in which samples 102 and 103 are answered, 101 is rejected, 104 has begun."""
    step = _step()
    step.refuse(0, 1, 3)
    step.place(0, 2, 0, _parts(3, 1.0))
    step.place(1, 3, 0, _parts(3, 1.0))
    step.place(1, 4, 0, _parts(2, 1.0))
    return step


def test_a_share_that_is_given_up_has_errors_where_answers_are_missing():
    step = _answered()
    step.give_up(1, 6)
    assert step.status.tolist() == [0, 3, 0, 0, 6] and step.left.tolist() == [1, 0]
    step.give_up(0, 8)
    assert step.status.tolist() == [8, 3, 0, 0, 6] and step.left.tolist() == [0, 0]


def test_samples_that_lack_answers():
    step, later = _answered(), Step.of(8, 50, _samples(), 2, (3, 16))
    assert lacking([step], 0) == [100] and lacking([step], 1) == [104]
    assert lacking([step, later], 0) == [50, 51, 52, 100]
    assert lacking([], 0) == []
    assert lacking(iter([step, later]), 1) == [53, 54, 104]
    mixed = _step(batch=MiniBatch(_samples(), np.array([9, 4, 7, 5, 6]), True))
    assert lacking([mixed], 0) == [4, 7, 9] and lacking([mixed], 1) == [5, 6]


@pytest.mark.parametrize("dense", [False, True])
def test_the_verdict_compares_every_bit_of_every_answer(dense):
    samples = _samples()
    expected = pooled_reference(samples, MODEL, 3)
    given = np.arange(80, dtype=np.float32).reshape(5, 16) if dense else None
    if dense:
        expected = ResultLayout.of(MODEL).to_beats(interaction(MODEL, given, expected))
    step = Step.of(0, 0, samples, 2, expected.shape[1:], given)

    def judged() -> StepResult:
        return StepResult.judge(step, MODEL, 3)

    step.answers[:], step.filled[:] = expected, expected.shape[1]
    assert judged() == StepResult(5, 0, 0)
    for place in ((2, 0, 0), (2, expected.shape[1] - 1, expected.shape[2] - 1)):
        kept = step.answers.copy()
        step.answers.view(np.uint32)[place] ^= 1
        assert judged() == StepResult(4, 1, 0)
        step.answers[:] = kept
    step.status[1] = 4  # an error, whatever the bits are
    assert judged() == StepResult(4, 0, 1)
    step.filled[0] -= 1  # equal so far, but not complete
    assert judged() == StepResult(3, 0, 1)
    step.answers[0] += 1
    assert judged() == StepResult(3, 0, 1)
    step.answers[3] += 1
    assert judged() == StepResult(2, 1, 1)
    assert StepResult.judge(step, MODEL, 4).equal < 2


def test_zeros_of_other_signs_differ():
    step = Step.of(0, 0, _samples(), 1, (2, 16))
    step.filled[:], step.answers[:] = 2, -0.0
    assert StepResult.judge(step, MODEL, 0, lambda samples, model, seed: np.zeros(
        (5, 2, 16), np.float32)) == StepResult(0, 5, 0)
