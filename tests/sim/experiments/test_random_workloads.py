"""Better constants make no interval longer: random workloads on the systems with their search."""

import pytest
from hypothesis import Phase, given, settings, target
from hypothesis import strategies as st

from host.model import Model
from sim.evaluation.point import Point
from sim.evaluation.site import Site
from tests.sim.experiments.test_monotone import improvable

WITHIN = 1.005
H100 = {"software": "tuned_h100", "gpu": "gpu_h100", "link": "pcie_h100", "rdma": True}
MACHINES = (
    {"nodes": 2, "software": "eager"},
    {"nodes": 4, "software": "tuned"},
    H100 | {"nodes": 4},
    H100 | {"nodes": 2, "gpus": 8, "inside": "topology_dgx_a100"},
    H100 | {"nodes": 4, "gpus": 8, "nics": 8, "inside": "topology_dgx_a100"})
_PHASES = (Phase.explicit, Phase.reuse, Phase.generate, Phase.target)  # shrinking takes minutes


@st.composite
def models(draw) -> Model:
    """A model of few small or large tables, with bags of random lengths."""
    tables = draw(st.integers(1, 6))
    least = draw(st.lists(st.integers(1, 8), min_size=tables, max_size=tables))
    dimension, width = draw(st.sampled_from((4, 16, 64))), draw(st.sampled_from((16, 256)))
    return Model(
        tuple(draw(st.sampled_from((3, 50, 5_000, 2_000_000))) for _ in least), dimension,
        draw(st.integers(1, 16)), (width, dimension), (width, 1), "random",
        tuple((few, few + draw(st.integers(0, 6))) for few in least),
        rule=draw(st.sampled_from(("clicks", "first_key", "drawn"))))


@st.composite
def points(draw, system: str, depths: tuple[int | None, ...], most: int) -> Point:
    """A random workload and machine for a system; ``most``: samples of a mini-batch."""
    training = draw(st.booleans())
    cluster = draw(st.sampled_from(MACHINES))
    if training and cluster.get("gpus", 1) > cluster.get("nics", 1):
        cluster = MACHINES[2]  # NICs that train have one GPU each
    return Point.named(system, cluster | {
        "dataset": draw(models()), "batching": "file",
        "mini_batch": draw(st.sampled_from((most // 8, most // 2, most))),
        "warmup": draw(st.sampled_from((0, 4))), "measured": draw(st.sampled_from((2, 4))),
        "seed": draw(st.integers(1, 99)),
        "in_flight": None if training else draw(st.sampled_from(depths)),
        "per_graph": 1 if training or draw(st.booleans()) else None,
        "local_cache": draw(st.sampled_from((0.0, 0.1, None)))},
        workload=("inference", "training")[training])


def interval(point: Point) -> float:
    return point.kind.at(Site.of(point))[0].interval_us


def faster_machines_are_no_slower(data, point: Point) -> None:
    names = [name for name, _ in improvable(point)]
    rates = dict(improvable(point))
    slow = interval(point)
    better = data.draw(st.dictionaries(st.sampled_from(names), st.floats(1.02, 10), min_size=1,
                                       max_size=3))
    fast = interval(point.changed(scaled=tuple(
        (name, by if rates[name] else 1 / by) for name, by in better.items())))
    target(fast / slow)
    assert fast <= slow * WITHIN


@pytest.mark.every
@pytest.mark.parametrize(("system", "count"), [
    ("bl-tuned", 3), ("fs", 2), pytest.param("en", 2, marks=pytest.mark.thorough)])
def test_no_better_constant_makes_an_interval_of_random_workloads_longer(system, count):
    @settings(max_examples=count, deadline=None, phases=_PHASES)
    @given(st.data(), points(system, (1, 4, 16), 64))
    def check(data, point):
        faster_machines_are_no_slower(data, point)

    check()


@pytest.mark.thorough
@pytest.mark.every
@pytest.mark.parametrize(("system", "count"), [("bl-tuned", 60), ("fs", 40), ("en", 15)])
def test_no_better_constant_makes_an_interval_of_larger_workloads_longer(system, count):
    @settings(max_examples=count, deadline=None, phases=_PHASES)
    @given(st.data(), points(system, (None, 1, 4, 16), 512))
    def check(data, point):
        faster_machines_are_no_slower(data, point)

    check()
