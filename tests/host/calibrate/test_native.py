"""The loops in C, with Python functions in place of the driver's."""

import ctypes
from ctypes import CFUNCTYPE, c_int, c_uint, c_uint32, c_uint64, c_void_p
from threading import Thread
from time import monotonic, sleep

import pytest

from host.calibrate.gpu import native
from host.calibrate.gpu.native import GRAPH, LAUNCH, WAIT, Action, Loops
from host.calibrate.reading import Missing

LAUNCHED = CFUNCTYPE(c_int, c_void_p, *[c_uint] * 7, c_void_p, c_void_p, c_void_p)
GIVEN = CFUNCTYPE(c_int, c_void_p, c_void_p)
WAITED = CFUNCTYPE(c_int, c_void_p)


@pytest.fixture(scope="module")
def loops():
    return Loops()


def _address(function):
    return ctypes.cast(function, c_void_p).value


def test_actions_are_the_drivers_calls_in_order(loops):
    said = []
    calls = [LAUNCHED(lambda *given: said.append(("launch", *given)) or 0),
             GIVEN(lambda *given: said.append(("graph", *given)) or 0),
             WAITED(lambda *given: said.append(("wait", *given)) or 0)]
    actions = [
        Action(LAUNCH, 5, 128, 0, _address(calls[0]), 1 << 40, 7, 9),
        Action(GRAPH, 0, 0, 0, _address(calls[1]), 11, 7),
        Action(WAIT, 0, 0, 0, _address(calls[2]), None, 7)]
    assert loops.row(actions, 2) > 0
    assert said == 2 * [("launch", 1 << 40, 5, 1, 1, 128, 1, 1, 0, 7, 9, None), ("graph", 11, 7),
                        ("wait", 7)]


def test_a_flag_is_waited_for_after_the_call(loops):
    flag = c_uint32(0)

    def later(stream):
        def set_flag():
            flag.value = 1
        Thread(target=set_flag).start()
        return 0

    call = WAITED(later)
    action = Action(WAIT, 0, 0, 0, _address(call))
    called, seen = loops.until(action, ctypes.addressof(flag), 1)
    assert 0 < called <= seen and flag.value == 1
    with pytest.raises(Missing, match="the GPU did not set its flag in time"):
        loops.until(action, ctypes.addressof(flag), 2, limit_us=100)


def test_a_bell_is_rung_with_one_store(loops):
    bell, reply = c_uint64(0), c_uint32(0)

    def serve():
        while bell.value != (3 << 32 | 4):
            pass
        reply.value = 4

    thread = Thread(target=serve)
    thread.start()
    us = loops.ring(ctypes.addressof(bell), 3 << 32 | 4, ctypes.addressof(reply), 4)
    thread.join()
    assert us > 0 and bell.value == 3 << 32 | 4
    with pytest.raises(Missing, match="did not set its flag"):
        loops.ring(ctypes.addressof(bell), 5, ctypes.addressof(reply), 5, limit_us=100)


APART = 16
"""Distance of the words of two mini-batches, in words of 32 bits."""


class _Gpu:
    """Ends a graph of two mini-batches some time after its words are set; counts graphs in
    flight."""

    def __init__(self, lanes, waits=True):
        self.words, self.dones = ((c_uint32 * (2 * lanes * APART))() for _ in range(2))
        self.under_way = self.most = self.launched = 0
        self._waits = waits
        self._call = GIVEN(self._launch)
        self.graphs = [Action(GRAPH, 0, 0, 0, _address(self._call), 1 + lane, None)
                       for lane in range(lanes)]

    def _launch(self, graph, stream):
        self.launched += 1
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        Thread(target=self._run, args=(2 * (graph - 1),), daemon=True).start()
        return 0

    def _run(self, first):
        for nth in (first, first + 1):
            end = monotonic() + 5
            while self._waits and not self.words[APART * nth] and monotonic() < end:
                sleep(1e-5)
        self.under_way -= 1
        for nth in (first, first + 1):
            self.dones[APART * nth] = 1

    def turns(self, loops, rounds, answer_us, **limit):
        return loops.turns(self.graphs, ctypes.addressof(self.words),
                           ctypes.addressof(self.dones), 2, rounds, answer_us, **limit)


def test_graphs_are_kept_under_way_and_words_come_late(loops):
    gpu = _Gpu(3)
    assert gpu.turns(loops, 20, 300.0) > 100  # three graphs at once, each ends late
    assert gpu.launched == 20 and gpu.most == 3
    assert not any(gpu.words) and not any(gpu.dones)


def test_words_are_left_alone_where_none_are_wanted(loops):
    gpu = _Gpu(2, waits=False)
    gpu.words[0] = 1
    assert gpu.turns(loops, 9, -1.0) > 0
    assert gpu.launched == 9 and gpu.words[0] == 1


def test_a_graph_without_end_or_before_its_words_is_missing(loops):
    for gpu, limit, reason in ((_Gpu(2), 20_000.0, "the GPU did not set its flag in time"),
                               (_Gpu(2, waits=False), 5e6, "a graph did not wait for its words")):
        with pytest.raises(Missing, match=reason):
            gpu.turns(loops, 9, 4e6, limit_us=limit)
        gpu.words[:] = [1] * len(gpu.words)  # ends its threads
    with pytest.raises(Missing, match="too few rounds"):
        _Gpu(2).turns(loops, 4, 1.0)


def test_the_drivers_error_ends_a_row(loops):
    count = []
    call = WAITED(lambda stream: count.append(1) or (0 if len(count) < 3 else 700))
    with pytest.raises(Missing, match="the driver reported error 700"):
        loops.row([Action(WAIT, 0, 0, 0, _address(call))], 10)
    assert len(count) == 3


def test_without_a_compiler_it_says_so(monkeypatch):
    monkeypatch.setattr(native, "compilers", lambda: [])
    with pytest.raises(Missing, match="no C compiler was found"):
        Loops()
    monkeypatch.setattr(native, "compilers", lambda: [["/none/cc"], ["false"]])
    with pytest.raises(Missing, match=r"false does not compile loops\.c"):
        Loops()


def test_the_environment_names_the_compiler(monkeypatch):
    monkeypatch.setenv("CC", "some-cc -m64")
    assert native.compilers()[0] == ["some-cc", "-m64"]
