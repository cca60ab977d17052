"""Look-ups in a cell's timing, for the tests of cells."""

from gen.timing.cells import CellTiming, Pin


def arcs(timing: CellTiming) -> dict[tuple[Pin, Pin], tuple[float, int]]:
    """Return the delay and nets of each arc; a second arc between two pins is an error."""
    found = {(arc.source, arc.target): (arc.ps, arc.nets) for arc in timing.arcs}
    assert len(found) == len(timing.arcs)
    return found


def launches(timing: CellTiming) -> dict[Pin, tuple[float, int]]:
    found = {launch.pin: (launch.ps, launch.nets) for launch in timing.launches}
    assert len(found) == len(timing.launches)
    return found


def captures(timing: CellTiming) -> dict[Pin, tuple[float, str, int]]:
    found = {entry.pin: (entry.ps, entry.kind, entry.nets) for entry in timing.captures}
    assert len(found) == len(timing.captures)
    return found


def bus(port: str, bits: int) -> list[Pin]:
    return [Pin(port, bit) for bit in range(bits)]
