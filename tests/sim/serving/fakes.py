"""Systems whose steps are made up."""

from host.systems import Step
from sim.serving.measured import COSTS, MiniBatches
from sim.serving.system import System

COST = {name: float(number) for number, name in enumerate(COSTS, 1)}


def step(us: float, latency_us: float = 0.0) -> Step:
    """A step that occupies a resource, and then only waits."""
    made = Step()
    at = made.add("work", "mlp", us, "nic")
    if latency_us:
        made.add("latency", "overhead", latency_us, after=(at,))
    return made


def mini_batches(size: int, us: float, latency_us: float = 0.0, graph: bool = False,
                 steps: list[Step] | None = None) -> MiniBatches:
    """Mini-batches that take ``us`` of a resource and a latency."""
    return MiniBatches(size, graph, steps or [step(us, latency_us)], us + latency_us, us, COST)


def server(us_of: dict[int, float], latency_us: float = 0.0, in_flight: int = 64) -> System:
    """A system with given times for given mini-batch sizes."""
    return System([mini_batches(size, us, latency_us) for size, us in us_of.items()], in_flight)
