"""The loops in C, on functions of Python's in place of the driver's."""

import ctypes
from ctypes import CFUNCTYPE, c_int, c_size_t, c_uint, c_uint32, c_uint64, c_void_p
from threading import Thread

import pytest

from host.calibrate.gpu import native
from host.calibrate.gpu.native import COPY, GRAPH, LAUNCH, WAIT, Action, Loops
from host.calibrate.reading import Missing

LAUNCHED = CFUNCTYPE(c_int, c_void_p, *[c_uint] * 7, c_void_p, c_void_p, c_void_p)
COPIED = CFUNCTYPE(c_int, c_uint64, c_uint64, c_size_t, c_void_p)
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
             COPIED(lambda *given: said.append(("copy", *given)) or 0),
             WAITED(lambda *given: said.append(("wait", *given)) or 0)]
    actions = [
        Action(LAUNCH, 5, 128, 0, _address(calls[0]), 1 << 40, 7, 9),
        Action(GRAPH, 0, 0, 0, _address(calls[1]), 11, 7),
        Action(COPY, 0, 0, 0, _address(calls[2]), None, 7, None, 1 << 45, 1 << 44, 1 << 33),
        Action(WAIT, 0, 0, 0, _address(calls[3]), None, 7)]
    assert loops.row(actions, 2) > 0
    assert said == 2 * [("launch", 1 << 40, 5, 1, 1, 128, 1, 1, 0, 7, 9, None), ("graph", 11, 7),
                        ("copy", 1 << 45, 1 << 44, 1 << 33, 7), ("wait", 7)]


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


def test_the_drivers_error_ends_a_row(loops):
    count = []
    call = WAITED(lambda stream: count.append(1) or (0 if len(count) < 3 else 700))
    with pytest.raises(Missing, match="the driver reported error 700"):
        loops.row([Action(WAIT, 0, 0, 0, _address(call))], 10)
    assert len(count) == 3


def test_without_a_compiler_it_says_so(monkeypatch):
    monkeypatch.setattr(native, "compilers", lambda: [])
    with pytest.raises(Missing, match="no C compiler was found: the wheel ziglang has one"):
        Loops()
    monkeypatch.setattr(native, "compilers", lambda: [["/none/cc"], ["false"]])
    with pytest.raises(Missing, match=r"false does not compile loops\.c"):
        Loops()


def test_the_environment_names_the_compiler(monkeypatch):
    monkeypatch.setenv("CC", "some-cc -m64")
    assert native.compilers()[0] == ["some-cc", "-m64"]
