"""Runs with row blocks: tables of some rows each, whose sums GPUs add in the order of blocks."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from host.data.generator import generate
from host.dlrm.dlrm import Dlrm
from host.model import Model, sliced
from sim.cli.main import main
from sim.job.options import RunOptions
from sim.offline.plan import plan
from sim.run.run import Run, run
from tests.host.dlrm.mixed import toml_of
from tests.sim.linked import LINKED
from tests.sim.nic_cpp.comparing import compared
from tests.sim.run.results import faultless

MODEL = Model((1000, 5000, 70, 901), 64, 3, (8, 64), (5, 1), "blocks",
              ((0, 3), (5, 30), (1, 1), (0, 9)), interaction="cat",
              dimensions=(16, 64, 48, 64), poolings=("sum", "sum", "mean", "sum"))
SAMPLES, BLOCKS = 72, "1:4,3:2"
UNIQUE = ("owner_bags=64", "deliver=unique")
thorough = pytest.mark.thorough


def _options(tmp_path: Path, *settings: str, weighted: tuple[int, ...] = (),
             **changes) -> RunOptions:
    text = toml_of(MODEL)
    for table in weighted:
        rows = f"rows = {MODEL.rows[table]}\n"
        text = text.replace(rows, f"weighted = true\n{rows}")
    (tmp_path / "blocks.toml").write_text(text)
    given = {"config": "tiny", "nodes": 2, "pool": "owner", "threads": 1, "samples": SAMPLES,
             "mini_batch": 24, "blocks": BLOCKS, "model": str(tmp_path / "blocks.toml")} | changes
    return RunOptions.of(**given, settings=settings or UNIQUE)


def _equal(options: RunOptions) -> dict:
    """Return the result of a run whose predictions are those of the reference."""
    predictions, job = [], Run(options)
    result = faultless(job.execute(predictions=predictions.append))
    whole = replace(MODEL, weighted_tables=tuple(sorted(
        {job.model.originals[table] for table in job.model.weighted_tables})))
    samples = sliced(next(generate(whole, SAMPLES, 1)), job.model)
    owner = tuple(np.flatnonzero(job.plan.owner_pooled).tolist())
    expected = Dlrm(job.model, 1, wire=options.workload.wire, owner_tables=owner).forward(samples)
    assert np.concatenate(predictions).tobytes() == expected.tobytes()
    return result


def test_blocks_have_owners_of_their_own(tmp_path):
    job = Run(_options(tmp_path, nodes=4, fidelity="fast"))
    assert job.model.rows == (1000, 1250, 1250, 1250, 1250, 70, 451, 450)
    owners = [table.owner for table in job.plan.tables]
    assert sorted(owners[1:5]) == [0, 1, 2, 3] and owners[6] != owners[7]


@thorough
@pytest.mark.parametrize("changes", [
    {}, {"nodes": 1}, {"nodes": 4}, {"nodes": 4, "wire": "float16"}, {"wire": "int8"},
    {"placement": "lookups"}, {"repeats": "indices"}, {"own_bags": "gpu"}, {"copied_rows": 1000},
    {"weighted": (1, 3)}, {"blocks": "1:8"}, {"blocks": "2:3"},
    {"blocks": "2:3", "settings": ("owner_bags=64",)}],
    ids=lambda changes: ", ".join(f"{name} {value}" for name, value in changes.items()) or "plain")
def test_predictions_are_those_of_the_reference(tmp_path, changes):
    settings = changes.get("settings", ())
    result = _equal(_options(tmp_path, *settings, **{
        name: value for name, value in changes.items() if name != "settings"}))
    assert result["options"]["blocks"] == changes.get("blocks", BLOCKS)


@thorough
def test_neither_nodes_nor_delivery_nor_placement_change_a_prediction(tmp_path):
    found = {faultless(run(_options(tmp_path, *settings, **changes)))["predictions_sha256"]
             for settings, changes in (((), {}), ((), {"nodes": 4}), (("owner_bags=64",), {}),
                                       ((), {"placement": "lookups", "nodes": 3}))}
    assert len(found) == 1


@thorough
def test_a_network_that_loses_frames(tmp_path):
    result = _equal(_options(tmp_path, *LINKED, "deliver=unique", nodes=3,
                             faults="drop=0.02,corrupt=0.01"))
    assert sum(fault["frames"] for fault in result["faults"]["injected"]) > 0


@thorough
def test_the_model_has_the_cycles_of_rtl(tmp_path):
    assert compared(_options(tmp_path, nodes=3)) == 0


def test_keys_are_sent_once_and_a_sum_by_each_block(tmp_path):
    options = _options(tmp_path, nodes=4)
    found = {blocks: plan(replace(options.workload, blocks=blocks, cluster="h100"))["tables"]
             for blocks in (None, BLOCKS)}
    whole, parts = found[None][1], [row for row in found[BLOCKS] if row["table"] == 1]
    assert [row["rows"] for row in parts] == [
        (first, first + 1249) for first in range(0, 5000, 1250)]
    assert all(row["columns"] is None for row in parts)
    bags, keys = (sum(row[name] for row in parts) for name in ("foreign_bags", "foreign_keys"))
    assert whole["foreign_bags"] < bags < 4 * whole["foreign_bags"] * 1.4
    assert keys == pytest.approx(whole["foreign_keys"], rel=0.15)  # other keys are foreign


@pytest.mark.parametrize(("changes", "error"), [
    ({"blocks": "1"}, "blocks must be TABLE:BLOCKS,..., such as 20:32, not '1'"),
    ({"blocks": "1:2,1:4"}, "blocks must name a table once, but table 1 is named twice"),
    ({"blocks": "1:4", "columns": "1:16"}, "blocks must be left out with columns, not '1:4'"),
    ({"blocks": "1:4", "pool": "requester"}, "table 1 has row blocks, so it must pool at its "
                                             "owner, not at the requester: use pool owner"),
    ({"blocks": "1:4", "settings": ("interaction=true",)},
     "blocks must be left out with interaction=true: the GPU joins the slices of a vector")])
def test_blocks_that_are_rejected(tmp_path, changes, error, capsys):
    settings = changes.pop("settings", ())
    with pytest.raises(ValueError) as raised:
        run(_options(tmp_path, *settings, **changes))
    assert str(raised.value) == error
    if not settings:
        given = [text for name, value in changes.items() for text in (f"--{name}", value)]
        with pytest.raises(SystemExit, match="2"):
            main(["run", "--config", "tiny", "--samples", "8", "--model",
                  str(tmp_path / "blocks.toml"), *given])
        assert "\n" not in capsys.readouterr().err.strip()
