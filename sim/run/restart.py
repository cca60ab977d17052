"""Restart of a node in a cluster: down, up again as after power-up, taken back by its peers."""

from collections.abc import Callable
from math import ceil

from host.timing.clock import cycles_of_us
from rtl.config import NicConfig
from sim.job.restarts import NicRestart
from sim.nic.registers import address_of
from sim.run.setup import ClusterSetup

__all__ = ["EPOCHS", "restart"]

EPOCHS = 256
_POLL = 100
_LIMIT = 50_000_000


def restart(setup: ClusterSetup, config: NicConfig, fault: NicRestart, epoch: int,
            step_floor: int = 0) -> dict[str, int]:
    """Carry out ``fault`` from now on; return when what happened, in cycles of the run.

    The new NIC has ``epoch``, all registers as before and ``step_floor``. Every other host tells
    its NIC, which takes it back once nothing of the former one is left.

    ``RuntimeError`` if a NIC does not within 50 million cycles.
    """
    cluster, number = setup.cluster, fault.node
    down = cluster.cycle
    setup.power_up(number)
    cluster.wait(down + ceil(cycles_of_us(fault.length)))
    registers, engine = setup.registers[number], cluster.nodes[number].engine
    setup.load(registers, number)
    registers.write("link_epoch", epoch)
    registers.write("step_floor", step_floor)
    _wait(setup, lambda: not engine.registers_pending and bool(engine.get_signal("idle")))
    up = cluster.cycle
    others = [other for other in range(len(cluster.nodes)) if other != number]
    for other in others:
        setup.registers[other].write("link_rejoin", number << 8 | epoch, up)
    taken = {other: _taken_back(setup, config, other) for other in others}
    return {"node": number, "epoch": epoch, "down": down - setup.start, "up": up - setup.start,
            "taken_back": max(taken.values()) - setup.start}


def _taken_back(setup: ClusterSetup, config: NicConfig, node: int) -> int:
    """Wait until the NIC of ``node`` has taken its peer back; return when it said so."""
    engine, found = setup.cluster.nodes[node].engine, []

    def taken() -> bool:
        nonlocal found
        engine.read(address_of(config, "link_rejoining"))
        setup.cluster.wait(setup.cluster.cycle + _POLL)
        found = [access.cycle for access in engine.read_results() if not access.data]
        return bool(found)

    _wait(setup, taken)
    return found[0]


def _wait(setup: ClusterSetup, done: Callable[[], bool]) -> None:
    end = setup.cluster.cycle + _LIMIT
    while not done():
        setup.cluster.wait(setup.cluster.cycle + _POLL)
        if setup.cluster.cycle >= end:
            raise RuntimeError(f"a restarted node is not back after {_LIMIT:,} cycles")
