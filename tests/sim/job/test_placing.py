"""Plans of workloads: the lookups by which tables are dealt, and the source of the counts."""


import numpy as np
import pytest

from host.data.generator import generate
from host.model import load_model
from host.placement.shard import ShardPlan
from rtl.formats import DescriptorKind
from sim.job.inputs import SampleSource
from sim.job.workload import MEASURED, Workload
from sim.training.options import TrainOptions

BAGS = """name = "bags"
dimension = 16
dense = 2
bottom = [16]
top = [1]
[[tables]]
rows = 50
[[tables]]
rows = 3_000
bag = [0, 30]
[[tables]]
rows = 1_048_576
bag = 2
[[tables]]
rows = 7
bag = [0, 1]
"""


@pytest.fixture
def bags(tmp_path):
    path = tmp_path / "bags.toml"
    path.write_text(BAGS)
    return str(path)


def _of(workload):
    return SampleSource.of(workload).lookups


def _generated(path, count):
    return tuple(sum(chunk.bag_lengths.sum(axis=0) for chunk in generate(
        load_model(path), count, 1)).tolist())


@pytest.mark.parametrize("samples, counted", [(None, 1024), (100, 100), (MEASURED + 500, MEASURED)])
def test_lookups_of_the_generator_are_counted_from_its_first_samples(bags, samples, counted):
    assert _of(Workload(model=bags, samples=samples)) == _generated(bags, counted)


def test_a_run_that_goes_on_has_the_same_plan(bags):
    given = {"model": bags, "samples": 300, "placement": "lookups", "nodes": 2}
    whole, rest = (Workload(**given, first_sample=first) for first in (0, 256))
    assert SampleSource.of(whole).plan() == SampleSource.of(rest).plan()


def test_tables_are_dealt_by_what_the_samples_ask(bags):
    workload = Workload(model=bags, placement="lookups", nodes=2)
    plan = SampleSource.of(workload).plan()
    # About 15 lookups per sample of table 1; 2, 1 and 0.5 of the others.
    assert [table.owner for table in plan.tables] == [1, 0, 1, 1]
    given = Workload(model=bags, placement="lookups", nodes=2, lookups=(9, 1, 5, 4))
    assert [table.owner for table in SampleSource.of(given).plan().tables] == [0, 0, 1, 1]


def _trace(lines):
    # Tables of one, two and no lookups a sample in turn.
    return "".join(f"0:{line % 5} 1:{line % 3} 1:4\n" for line in range(lines))


def test_lookups_of_a_file_are_counted(tmp_path):
    path = tmp_path / "trace.txt"
    path.write_text(_trace(20))
    assert _of(Workload(data=str(path), format="trace")) == (20, 40)
    assert _of(Workload(data=str(path), format="trace", samples=5)) == (5, 10)


def test_other_placements_read_nothing():
    model = load_model("kaggle")
    for placement in ("even", "rows", "row"):
        workload = Workload(data="absent.txt", format="criteo", placement=placement)
        assert SampleSource(workload, model, "criteo").plan() == ShardPlan.deal(model, 4, placement)


def test_the_placement_is_checked_at_once():
    with pytest.raises(ValueError, match="placement must be one of even, rows, lookups, row, "
                                         "not 'table'"):
        Workload(placement="table")


def test_lookups_of_a_table_too_few_are_refused():
    workload = Workload(placement="lookups", lookups=(1, 2))
    with pytest.raises(ValueError, match="lookups must be 26 numbers, one for each table, not 2"):
        SampleSource.of(workload).plan()


def test_balanced_lookups_are_closer_than_the_others(bags):
    workload = Workload(model=bags, nodes=2)
    source = SampleSource.of(workload)
    lookups = np.array(_of(workload))
    spread = {}
    for placement in ("even", "rows", "lookups"):
        owners = [table.owner for table in source.plan(placement).tables]
        spread[placement] = np.ptp(np.bincount(owners, lookups, minlength=2))
    assert spread["lookups"] == min(spread.values()) < spread["rows"]


def test_small_tables_are_copied_on_request():
    workload = Workload(nodes=4, samples=8, mini_batch=4, copied_rows=10_000)
    source = SampleSource.of(workload)
    plan, model = source.plan(), source.model
    assert plan == ShardPlan.deal(model, 4).with_copies(10_000)
    assert [table.kind == DescriptorKind.REPLICATED for table in plan.tables] == [
        rows <= 10_000 for rows in model.rows]
    with pytest.raises(ValueError, match="copied_rows must be at least 0, not -1"):
        Workload(copied_rows=-1)
    with pytest.raises(ValueError, match="copied_rows must be 0 in training, not 9"):
        TrainOptions.of(copied_rows=9)
