"""Restart of a node in a cluster: down, up again as after power-up, taken back by its peers."""

from collections.abc import Callable
from math import ceil

from host.timing.clock import cycles_of_us
from sim.cluster.cluster import Cluster
from sim.job.restarts import NicRestart
from sim.nic.registers import address_of
from sim.run.simulation import Simulation

__all__ = ["EPOCHS", "restart"]

EPOCHS = 256
_POLL = 100
_LIMIT = 50_000_000


def restart(simulation: Simulation, fault: NicRestart, epoch: int, step_floor: int = 0,
            at_quantum: Callable[[int], None] = lambda cycle: None) -> dict[str, int]:
    """Carry out ``fault`` from now on; return the cycles of its events.

    The new NIC has ``epoch``, ``step_floor``, and its former values in all other registers. Every
    other host informs its NIC, which takes the new NIC back when all packets of the former NIC are
    gone. ``at_quantum``: callback of :meth:`sim.cluster.cluster.Cluster.run`.

    ``RuntimeError`` if a NIC does not take it back within 50 million cycles.
    """
    cluster, number = simulation.cluster, fault.node
    down = cluster.cycle
    simulation.power_up(number)
    cluster.wait(down + ceil(cycles_of_us(fault.length)), at_quantum)
    registers, engine = simulation.registers[number], cluster.nodes[number].engine
    # Before the address: frames to the former NIC may still arrive.
    registers.write("link_epoch", epoch)
    simulation.load(number)
    registers.write("step_floor", step_floor)
    _wait(cluster, at_quantum,
          lambda: not engine.registers_pending and bool(engine.get_signal("idle")))
    up = cluster.cycle
    others = [other for other in range(len(cluster.nodes)) if other != number]
    for other in others:
        simulation.registers[other].write("link_rejoin", number << 8 | epoch, up)
    taken: dict[int, int] = {}

    def all_taken() -> bool:
        for other in others:
            peer = cluster.nodes[other].engine
            for access in peer.read_results():
                if access.cycle > up and not access.data:
                    taken.setdefault(other, access.cycle)
            # Accesses of a cycle are done in order: the write is first.
            if other not in taken:
                peer.read(address_of(simulation.config, "link_rejoining"), up)
        return len(taken) == len(others)

    _wait(cluster, at_quantum, all_taken)
    start = simulation.start
    return {"node": number, "epoch": epoch, "down": down - start, "up": up - start,
            "taken_back": max(taken.values()) - start}


def _wait(cluster: Cluster, at_quantum: Callable[[int], None], done: Callable[[], bool]) -> None:
    end = cluster.cycle + _LIMIT
    while not done():
        cluster.wait(cluster.cycle + _POLL, at_quantum)
        if cluster.cycle >= end:
            raise RuntimeError(f"a restarted node is not back after {_LIMIT:,} cycles")
