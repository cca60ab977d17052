"""A NIC for tests of the interaction, and models that are small enough for it; all tests share the
build."""

import hashlib
from functools import cache
from pathlib import Path

import numpy as np

from host.data.generator import generate
from host.dlrm.dlrm import Dlrm
from host.model import Model, load_model
from sim.job.options import RunOptions
from sim.run.report import failures
from sim.run.run import Run

NIC = ("max_dimension=128", "hold_vectors=1024", "host_payload_beats=24", "dot_units=2",
       "owner_bags=64")
"""Changes of ``tiny``: vectors of up to 8 beats, bags of 100 keys, results of several packets,
and dot units and places for bags even if a run does not use them."""

ROWS = (50, 3000, 1 << 20, 7, 90_000)
BAGS = {"one-hot": (), "to 3": ((1, 1), (0, 3), (2, 2), (0, 1), (1, 1)),
        "to 9": ((1, 1), (0, 3), (2, 2), (0, 9), (1, 6)),
        "to 40": ((1, 1), (0, 40), (1, 1), (1, 5), (0, 2)),
        "to 100": ((1, 1), (0, 100), (1, 1), (1, 3), (0, 20))}


def model_of(dimension: int, bags: str, interaction: str = "dot", itself: bool = False) -> Model:
    """Return a model of five tables."""
    return Model(ROWS, dimension, 3, (8, dimension), (4, 1), "small", BAGS[bags],
                 interaction=interaction, interaction_itself=itself)


def write_model(path: Path, model: Model) -> str:
    """Write ``model`` as a model file; return its name."""
    tables = zip(model.rows, model.bags or [(1, 1)] * model.tables,
                 model.poolings or [model.pooling] * model.tables)
    path.write_text("\n".join([
        f'name = "{model.name}"', f"dimension = {model.dimension}", f"dense = {model.dense}",
        f"bottom = {list(model.bottom)}", f"top = {list(model.top)}",
        f'interaction = "{model.interaction}"',
        f"interaction_itself = {str(model.interaction_itself).lower()}",
        *(f'[[tables]]\nrows = {rows}\nbag = {list(bag)}\npooling = "{pooling}"\n'
          f"weighted = {str(table in model.weighted_tables).lower()}"
          for table, (rows, bag, pooling) in enumerate(tables))]) + "\n")
    assert load_model(path) == model
    return str(path)


@cache
def predictions_sha(model: Model, samples: int) -> str:
    """Return the hash of the numpy model's predictions for generated samples."""
    parts = [Dlrm(model, 1).forward(part) for part in generate(model, samples, 1)]
    return hashlib.sha256(np.concatenate(parts).astype("<f4").tobytes()).hexdigest()


def job_of(model: str, *settings: str, **options) -> Run:
    """Return a run on the NIC."""
    given = {"nodes": 2, "samples": 96, "mini_batch": 32, "threads": 1, "placement": "row"}
    return Run(RunOptions.of(config="tiny", model=model, settings=(*NIC, *settings),
                          **given | options))


def good(job: Run) -> dict:
    """Execute ``job``; return its result, which must equal the numpy model's in every bit."""
    result = job.execute()
    assert failures(result) == []
    assert result["bit_identical"] and result["results"]["equal"] == result["samples"]
    for counters in result["counters"]:
        for name, value in counters.items():
            assert not value or not name.endswith(
                ("overruns", "bad_length", "bad_landings", "bad_fills", "dropped")), name
    return result
