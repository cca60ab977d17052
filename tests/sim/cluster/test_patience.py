"""The watchdog's rules, cycle by cycle: when a run counts as stuck, and since when."""

from types import SimpleNamespace

import pytest

from sim.cluster.watchdog import StuckError, Watchdog
from sim.engines.engine import FOREVER


def _node(number: int = 0, *, beat: int | None = None, progress: float = 0.0, lacking=()):
    return SimpleNamespace(number=number, engine=SimpleNamespace(last_beat=beat),
                           progress=progress, lacking=list(lacking))


def _stuck(call, *given) -> StuckError:
    with pytest.raises(StuckError) as stuck:
        call(*given)
    return stuck.value


def test_patience_counts_from_the_first_check_without_a_new_action():
    watchdog, nodes = Watchdog(100, FOREVER, 7), [_node()]
    watchdog.check(50, 0, nodes)  # at the first check, zero actions differ from no count
    watchdog.check(149, 0, nodes)
    error = _stuck(watchdog.check, 150, 0, nodes)
    assert error.since == 50 and str(error) == "no beat moved for 100 cycles after cycle 50"


@pytest.mark.parametrize("actions", [4, 6])
def test_each_action_begins_the_patience_again(actions):
    """The sum of actions is compared for equality: counters of hosts may restart."""
    watchdog, nodes = Watchdog(100, FOREVER, 0), [_node()]
    watchdog.check(10, 5, nodes)
    watchdog.check(90, actions, nodes)
    watchdog.check(189, actions, nodes)
    assert _stuck(watchdog.check, 190, actions, nodes).since == 90


def test_long_numbers_have_separators():
    watchdog, nodes = Watchdog(20_000, FOREVER, 0), [_node()]
    watchdog.check(1_000, 0, nodes)
    error = _stuck(watchdog.check, 21_000, 0, nodes)
    assert str(error) == "no beat moved for 20,000 cycles after cycle 1,000"


def test_the_last_beat_of_any_nic_counts():
    watchdog = Watchdog(100, FOREVER, 0)
    nodes = [_node(beat=30), _node(beat=None), _node(beat=80), _node(beat=0)]
    watchdog.check(0, 5, nodes)
    watchdog.check(100, 5, nodes)
    watchdog.check(179, 5, nodes)
    nodes[3].engine.last_beat = 180
    watchdog.check(180, 5, nodes)
    watchdog.check(279, 5, nodes)
    assert _stuck(watchdog.check, 280, 5, nodes).since == 180


def test_beats_before_the_last_action_do_not_shorten_the_patience():
    watchdog, nodes = Watchdog(100, FOREVER, 0), [_node(beat=3)]
    watchdog.check(40, 5, nodes)
    watchdog.check(139, 5, nodes)
    assert _stuck(watchdog.check, 140, 5, nodes).since == 40


def test_samples_that_are_handed_out_later_are_waited_for():
    watchdog, nodes = Watchdog(100, FOREVER, 0), [_node(), _node(progress=101.0)]
    watchdog.check(0, 5, nodes)
    watchdog.check(100, 5, nodes)  # hand-out is in cycle 101: the patience starts again
    watchdog.check(199, 5, nodes)
    assert _stuck(watchdog.check, 200, 5, nodes).since == 100


def test_a_result_of_this_cycle_is_not_handed_out_later():
    watchdog, nodes = Watchdog(100, FOREVER, 0), [_node(progress=100.0)]
    watchdog.check(0, 5, nodes)
    assert _stuck(watchdog.check, 100, 5, nodes).since == 0


@pytest.mark.parametrize(("progress", "limit"), [(0.0, None), (20.0, None), (20.5, 121),
                                                 (119.0, 219), (119.5, 220), (200.0, 300)])
def test_a_result_moves_the_limit(progress, limit):
    """The host's cycle is rounded up to the least valid limit."""
    watchdog, nodes = Watchdog(10, 100, 20), [_node(), _node(1, progress=progress)]
    assert watchdog.limit == 120
    if limit is None:
        error = _stuck(watchdog.results, 120, nodes)
        assert error.since == 20
        assert str(error) == "no result made progress for 100 cycles after cycle 20"
        return
    watchdog.results(120, nodes)
    assert watchdog.limit == limit
    error = _stuck(watchdog.results, limit, nodes)
    assert error.since == limit - 100


def test_a_limit_lies_never_before_the_limit_of_an_earlier_result():
    """The last progress of a restarted node is earlier than the progress of other nodes."""
    watchdog, node = Watchdog(10, 100, 0), _node(progress=90.0)
    watchdog.results(100, [node])
    assert watchdog.limit == 190
    node.progress = 5.0
    assert _stuck(watchdog.results, 190, [node]).since == 90


@pytest.mark.parametrize(("lacking", "words"), [
    ([[], []], ""), ([[], [4]], "; not answered: samples 4 of node 1"),
    ([[1, 2, 3, 4], []], "; not answered: samples 1, 2, 3, 4 of node 0"),
    ([[1, 2, 3, 4, 5], [9]],
     "; not answered: samples 1, 2, 3, 4 and 1 more of node 0; 9 of node 1"),
    ([range(1_505)], "; not answered: samples 0, 1, 2, 3 and 1,501 more of node 0")])
def test_samples_without_answers_are_named_by_node(lacking, words):
    nodes = [_node(number, lacking=samples) for number, samples in enumerate(lacking)]
    error = _stuck(Watchdog(10, 1_000, 2_000).results, 3_000, nodes)
    assert str(error) == f"no result made progress for 1,000 cycles after cycle 2,000{words}"


def test_nics_are_asked_only_when_patience_is_over():
    """Reading their last beat is slow; work that begins before the end of patience is no delay."""
    asked: list[int] = []

    class _Engine:
        @property
        def last_beat(self) -> int:
            asked.append(1)
            return 0

    node = _node(progress=155.0)
    node.engine = _Engine()
    watchdog = Watchdog(100, FOREVER, 0)
    for cycle in (60, 150, 159):
        watchdog.check(cycle, 5, [node])
    assert not asked
    assert _stuck(watchdog.check, 160, 5, [node]).since == 60
    assert asked == [1]
