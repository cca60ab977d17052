"""Runs with column slices: tables of some columns each, with the predictions of whole tables."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from host.model import Model
from sim.job.options import RunOptions
from sim.run.run import Run, run
from tests.host.dlrm.mixed import batches, toml_of
from tests.sim.linked import LINKED
from tests.sim.nic_cpp.comparing import compared
from tests.sim.run.results import faultless, totals

MODEL = Model((1000, 5000, 70, 900), 64, 3, (8, 64), (5, 1), "columns",
              ((0, 3), (5, 12), (1, 1), (0, 2)), interaction="cat",
              dimensions=(16, 64, 48, 64), poolings=("sum", "sum", "mean", "mean"))
STEPS, MINI_BATCH = 3, 24
COLUMNS = "1:16,3:32"
SLICES = ((0, 0), (1, 0), (1, 16), (1, 32), (1, 48), (2, 0), (3, 0), (3, 32))
"""Table and first column of each table in NICs with `COLUMNS`."""
UNIQUE = ("owner_bags=64", "deliver=unique")
thorough = pytest.mark.thorough


def _options(tmp_path: Path, *settings: str, **changes) -> RunOptions:
    path = tmp_path / "columns.toml"
    path.write_text(toml_of(MODEL))
    given = {"config": "tiny", "nodes": 2, "pool": "owner", "threads": 1,
             "samples": STEPS * MINI_BATCH, "mini_batch": MINI_BATCH} | changes
    return RunOptions.of(**given, model=str(path), settings=settings or UNIQUE)


def _equal(tmp_path: Path, *settings: str, **changes) -> tuple[dict, dict]:
    """Return the results of runs with slices and with whole tables, whose predictions are equal."""
    sliced, whole = (faultless(run(_options(tmp_path, *settings, **changes | given))) for given in (
        {"columns": changes.get("columns", COLUMNS)}, {"columns": None}))
    assert sliced["predictions_sha256"] == whole["predictions_sha256"]
    return sliced, whole


def test_slices_have_owners_of_their_own(tmp_path):
    job = Run(_options(tmp_path, columns=COLUMNS, nodes=4, fidelity="fast"))
    assert job.model.slices == SLICES
    assert job.plan.beats.tolist() == [1, 1, 1, 1, 1, 3, 2, 2]
    owners = [table.owner for table in job.plan.tables]
    assert sorted(owners[1:5]) == [0, 1, 2, 3] and owners[6] != owners[7]


@thorough
@pytest.mark.parametrize("changes", [
    {}, {"nodes": 4}, {"nodes": 4, "wire": "float16", "columns": "1:32,3:32"},
    {"wire": "int8", "columns": "1:32"}, {"nodes": 1},
    {"placement": "lookups"}, {"repeats": "indices"},
    pytest.param({"repeats": "nic"}, marks=pytest.mark.slow), {"own_bags": "gpu"},
    {"copied_rows": 1000, "columns": "1:32,3:16"}, {"first_sample": 24}],
    ids=lambda changes: ", ".join(f"{name} {value}" for name, value in changes.items()) or "plain")
def test_predictions_are_those_of_whole_tables(tmp_path, changes):
    sliced, whole = _equal(tmp_path, **changes)
    assert sliced["options"]["columns"] == changes.get("columns", COLUMNS)
    assert whole["options"]["columns"] is None
    assert sliced["lookups"] > whole["lookups"]


@thorough
def test_the_nic_pools(tmp_path):
    _equal(tmp_path, "owner_bags=64")


@thorough
def test_a_network_that_loses_frames(tmp_path):
    sliced, _ = _equal(tmp_path, *LINKED, "deliver=unique", nodes=3,
                       faults="drop=0.02,corrupt=0.01")
    assert sum(fault["frames"] for fault in sliced["faults"]["injected"]) > 0


@thorough
def test_only_the_vectors_of_slices_cross_the_network(tmp_path):
    """Each foreign slice sends its beats; slices of a table have the beats of the table."""
    options = _options(tmp_path, columns=COLUMNS, nodes=4)
    job = Run(options)
    owners = np.array([table.owner for table in job.plan.tables])
    expected = 0
    for batch in batches(MODEL, STEPS, MINI_BATCH):
        for node, share in enumerate(batch.shares(4)):
            full = share.bag_lengths[:, [table for table, _ in SLICES]] > 0
            expected += int((full * job.plan.beats)[:, owners != node].sum())
    assert totals(faultless(job.execute()))["bag_vectors.beats"] == expected


@thorough
@pytest.mark.parametrize("nodes", [1, 3])
def test_the_model_has_the_cycles_of_rtl(tmp_path, nodes):
    assert compared(_options(tmp_path, columns=COLUMNS, nodes=nodes)) == 0


@thorough
def test_dots_join_the_slices(tmp_path):
    """The GPU concatenates the slices of a vector before it computes dots."""
    path = tmp_path / "dots.toml"
    path.write_text("dimension = 64\ndense = 3\nbottom = [8, 64]\ntop = [5, 1]\n"
                    "rows = [90, 80, 70]")
    given = {"config": "tiny", "nodes": 2, "samples": 32, "mini_batch": 16, "pool": "owner",
             "threads": 1, "settings": UNIQUE, "model": str(path)}
    results = [faultless(run(RunOptions.of(**given, columns=columns)))["predictions_sha256"]
               for columns in (None, "1:16", "0:32,1:32,2:32")]
    assert len(set(results)) == 1


def test_names_of_tables(tmp_path):
    text = toml_of(replace(MODEL, name="named")).split("[[tables]]\n")
    path, pool = tmp_path / "named.toml", tmp_path / "pool.toml"
    path.write_text("[[tables]]\n".join([text[0], *(
        f'name = "{name}"\n{table}' for name, table in zip(("a", "b b", "c", "a"), text[1:]))]))
    pool.write_text('owner = ["b b", 3]')
    job = Run(RunOptions.of(config="tiny", nodes=2, samples=8, mini_batch=8, model=str(path),
                            pool=str(pool), columns="b b:16,3:32",
                            settings=UNIQUE, fidelity="fast"))
    assert job.model.slices == SLICES
    assert (job.plan.owner_pooled > 0).tolist() == [
        table in (1, 3) for table, _ in SLICES]


@pytest.mark.parametrize(("changes", "error"), [
    ({"columns": "1"}, "columns must be TABLE:WIDTH,..., such as 20:32, not '1'"),
    ({"columns": "1:x"}, "columns must be TABLE:WIDTH,..., such as 20:32, not '1:x'"),
    ({"columns": "1:16,1:32"}, "columns must name a table once, but table 1 is named twice"),
    ({"columns": "4:16"}, "columns must name tables 0 to 3, not 4"),
    ({"columns": "seen:16"}, "columns must have numbers of tables, not 'seen': the model has no "
                             "names of tables"),
    ({"columns": "1:24"}, "columns of table 1 must be a multiple of 16, the values of a beat, not "
                          "24"),
    ({"columns": "1:0"}, "columns of table 1 must be a multiple of 16, the values of a beat, not "
                         "0"),
    ({"columns": "1:16", "wire": "float16"}, "columns of table 1 must be a multiple of 32, the "
                                             "values of a beat, not 16"),
    ({"columns": "2:32"}, "columns of table 2 must divide its dimension, 48, not 32"),
    ({"columns": "1:16", "pool": "requester"}, "table 1 has column slices, so it must pool at its "
                                               "owner, not at the requester: use pool owner"),
    ({"columns": "1:16", "placement": "row"}, "table 1 has column slices, so it must pool at its "
     "owner, not at the requester: its rows are hashed over 2 nodes"),
    ({"columns": "1:16", "settings": ("interaction=true",)},
     "columns must be left out with interaction=true: the GPU joins the slices of a vector")])
def test_columns_that_are_rejected(tmp_path, changes, error):
    given = {"config": "tiny", "nodes": 2, "samples": 8, "mini_batch": 8, "pool": "owner",
             "model": str(tmp_path / "columns.toml")}
    (tmp_path / "columns.toml").write_text(toml_of(MODEL))
    with pytest.raises(ValueError) as raised:
        run(RunOptions.of(**given | changes))
    assert str(raised.value) == error


def test_the_choice_of_pools_keeps_slices_at_owners(tmp_path):
    """Few keys of many bytes would be looked up, but slices need owner pooling."""
    def pools(**changes) -> list[bool]:
        options = _options(tmp_path, pool="auto", nodes=2, fidelity="fast", **changes)
        return (Run(options).plan.owner_pooled > 0).tolist()

    sliced = pools(columns="1:16,3:32")
    assert all(sliced[1:5]) and all(sliced[6:])
