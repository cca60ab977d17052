"""The description of a component's ports."""

import pytest
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from sim.engines.design import describe
from tests.sim.engine_designs import AxiLite, Grouper


class Ports(wiring.Component):
    """A component that has only ports."""

    def elaborate(self, platform):
        raise AssertionError("a description needs no elaboration")


def test_grouper():
    design = describe(Grouper())
    assert [(s.name, s.is_input, s.width, s.words) for s in design.streams.values()] == [
        ("items", True, 7, 1), ("groups", False, 79, 3), ("i", True, 514, 17),
        ("o", False, 514, 17)]
    assert {s.name: (s.is_input, s.width, s.init) for s in design.signals.values()} == {
        "time": (True, 32, 0), "idle": (False, 1, 0), "bias": (True, 5, 3),
        "beats": (False, 16, 0), "peek": (True, 3, 0), "peeked": (False, 65, 0),
        "mark": (False, 8, 0), "parity": (False, 6, 0),
        "waits": (False, 1, 0), "deadline": (False, 32, 0),
        "channels__valid": (False, 4, 0), "channels__ready": (False, 4, 0)}
    assert len(design.registers["awaddr"]) == 6


def test_nested_and_repeated_members():
    link = wiring.Signature({"rx": In(stream.Signature(8)), "tx": Out(stream.Signature(40)),
                             "up": Out(1)})
    design = describe(Ports({"net": Out(link), "flipped": In(link),
                             "lanes": In(stream.Signature(64)).array(2)}))
    assert {s.name: (s.is_input, s.words) for s in design.streams.values()} == {
        "net__rx": (True, 1), "net__tx": (False, 2), "flipped__rx": (False, 1),
        "flipped__tx": (True, 2), "lanes__0": (True, 2), "lanes__1": (True, 2)}
    assert {s.name: s.is_input for s in design.signals.values()} == {
        "net__up": False, "flipped__up": True}


@pytest.mark.parametrize("ports, text", [
    ({"s": In(stream.Signature(8, always_ready=True))}, "stream s must have valid and ready, not"),
    ({"idle": In(1)}, "port idle must be an output of 1 bits, not"),
    ({"idle": Out(2)}, "port idle must be an output of 1 bits, not"),
    ({"waits": Out(1)}, "ports waits and deadline must be defined together"),
    ({"time": In(64)}, "port time must be an input of 32 bits, not"),
    ({"csr": In(wiring.Signature({**AxiLite.members, "wdata": Out(64)}))},
     "csr.wdata must have at most 32 bits, not 64"),
])
def test_bad_ports(ports, text):
    with pytest.raises(ValueError, match=text):
        describe(Ports(ports))


def test_not_a_component():
    with pytest.raises(TypeError, match=r"component must be a wiring.Component, not 3"):
        describe(3)
