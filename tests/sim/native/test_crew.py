"""The compiled thread pool: every node runs through each quantum, on any free thread."""

import ctypes
import subprocess
import sys
import threading
from ctypes import CFUNCTYPE, c_bool, c_uint64, c_void_p
from types import SimpleNamespace

import pytest

from sim.native.crew import CompiledCrew
from sim.nic.timed import TIMED
from sim.node.errors import ProtocolError
from tests.sim.callbacks import nothing_if_raised

_ADVANCE = CFUNCTYPE(c_uint64, c_void_p, c_uint64, c_bool)
FIRST = 70
"""Cycle of the nodes when a crew takes them over."""


class _Nodes:
    """Nodes that call ``act(node, end)`` when they are advanced, and return its result."""

    def __init__(self, count: int, act):
        self.calls: list[tuple[int, int, bool]] = []
        self.taken: list[tuple[int, int]] = []

        def advance(host: int, end: int, timed: bool) -> int:
            self.calls.append((host - 1, end, timed))
            return act(host - 1, end)

        self._kept = _ADVANCE(nothing_if_raised(advance))
        address = ctypes.cast(self._kept, c_void_p).value
        self.nodes = [SimpleNamespace(native=(at + 1, address), engine=SimpleNamespace(cycle=FIRST),
                                      take=lambda count, at=at: self.take(at, count))
                      for at in range(count)]

    def take(self, node: int, count: int) -> None:
        if count == 99:
            raise ProtocolError(f"node {node}")
        self.taken.append((node, count))


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_every_node_goes_to_the_end_of_each_quantum(threads):
    nodes = _Nodes(5, lambda node, end: 10 * end + node if node % 2 else 0)
    ends = [FIRST + 8 * number for number in range(1, 301)]
    with CompiledCrew(nodes.nodes, threads) as crew:
        for number, end in enumerate(ends, 1):
            crew.advance(end)
            calls, nodes.calls = nodes.calls, []
            assert {timed for *_, timed in calls} == {number % TIMED == 0}
            for node in range(5):
                assert [at for who, at, _ in calls if who == node] == (
                    [end] if threads == 1 else [end - 6, end - 3, end])
    assert nodes.taken == [(node, 10 * end + node) for end in ends for node in (1, 3)]


def test_nodes_stay_with_their_threads():
    """Two threads that meet at a barrier in each pair of nodes run one node of the pair each."""
    meet = threading.Barrier(2)
    seen: dict[int, set[int]] = {node: set() for node in range(6)}

    def act(node: int, end: int) -> int:
        seen[node].add(threading.get_native_id())
        meet.wait(10)
        return 0

    with CompiledCrew(_Nodes(6, act).nodes, 2) as crew:
        for end in range(100, 110):
            crew.advance(end)
    assert all(len(threads) == 1 for threads in seen.values())
    assert seen[0] == seen[2] == seen[4] == {threading.get_native_id()} != seen[1]


def test_a_free_thread_helps():
    """The first node ends only after all others, so the other thread must run those."""
    others = threading.Semaphore(0)
    by: dict[int, list[int]] = {node: [] for node in range(6)}
    acquired = []

    def act(node: int, end: int) -> int:
        by[node].append(threading.get_native_id())
        if node:
            others.release()
        else:
            acquired.extend(others.acquire(timeout=10) for _ in range(5))
        return 0

    with CompiledCrew(_Nodes(6, act).nodes, 2) as crew:
        crew.advance(100)
    assert acquired == 15 * [True]
    # In each part of a quantum, the thread without the first node runs all others.
    for part in range(3):
        assert len({by[node][part] for node in range(1, 6)}) == 1
        assert by[1][part] != by[0][part]


def test_sleeping_threads_are_woken():
    """All threads meet at a barrier, so each must wake; a wait in C++ times out in two seconds."""
    meet = threading.Barrier(2)
    met = []

    def act(node: int, end: int) -> int:
        try:
            meet.wait(1.5)
            met.append(True)
        except threading.BrokenBarrierError:
            met.append(False)
        return 0

    with CompiledCrew(_Nodes(2, act).nodes, 2) as crew:
        for end in range(100, 103):
            crew.advance(end)
            threading.Event().wait(0.05)  # far longer than a thread polls before it sleeps
    assert met == 18 * [True]


def test_threads_that_cannot_be_started():
    """A memory limit leaves room for only a few of their stacks."""
    code = """if True:
        import resource
        from types import SimpleNamespace
        from sim.native.crew import CompiledCrew, crew_functions
        crew_functions()
        pages = int(open("/proc/self/statm").read().split()[0])
        room = pages * resource.getpagesize() + 40 * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (room, room))
        node = SimpleNamespace(engine=SimpleNamespace(cycle=0))
        try:
            CompiledCrew([node], 200).__enter__()
        except OSError as error:
            print(error)
    """
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert said.stdout == "threads must be fewer: 200 cannot be started\n", said.stderr


def test_all_nodes_advance_before_an_error_is_raised():
    nodes = _Nodes(4, lambda node, end: (1, 99, 3, 99)[node])
    with CompiledCrew(nodes.nodes, 2) as crew, pytest.raises(ProtocolError, match="node 1"):
        crew.advance(100)
    assert len(nodes.calls) == 12 and nodes.taken == [(0, 1)]
