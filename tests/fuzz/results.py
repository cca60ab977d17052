"""Attacks on files that commands write and resume from: each changes a file that a command reads
again."""

import io
import random
from functools import cache
from pathlib import Path

import numpy as np

from host.dlrm.checkpoint import load_checkpoint, save_checkpoint
from host.dlrm.optimizer import Optimizer
from host.dlrm.trainer import reference_trainer
from host.errors import InputError
from host.model import Model
from host.sealed import write_sealed
from sim.evaluation.store import Store
from sim.run.predictions import PredictionFile
from tests.fuzz.mutating import mutated, mutated_text
from tests.fuzz.trying import Defect, refusal
from tests.sim.experiments.fakes import Spot

__all__ = ["checkpoints", "predictions", "stores"]

_SHAPE = Model((50, 3, 400), 16, 3, (8, 16), (4, 1))


@cache
def _checkpoint() -> bytes:
    trainer = reference_trainer(_SHAPE, 1)
    trainer.embeddings.rows.write(np.arange(5), np.ones((5, 16), np.float32),  # type: ignore
                                  np.zeros(5, np.float32))
    file = io.BytesIO()
    save_checkpoint(file, 3, trainer.dense, trainer.embeddings.rows, Optimizer())  # type: ignore
    return file.getvalue()


def checkpoints(chance: random.Random, folder: Path) -> str:
    """Change bits of a checkpoint, or its arrays with a correct checksum."""
    path = folder / "c.npz"
    content = _checkpoint()
    resealed = chance.random() < 0.5
    if resealed:
        with np.load(io.BytesIO(content)) as file:
            arrays = dict(file)
        name = chance.choice(list(arrays))
        arrays[name] = _changed(arrays[name], chance)
        with path.open("w+b") as file:
            write_sealed(file, arrays)
    else:
        path.write_bytes(mutated(content, chance))
    trainer = reference_trainer(_SHAPE, 1)
    rows = trainer.embeddings.rows  # type: ignore[attr-defined]
    ended = refusal(lambda: load_checkpoint(path, trainer.dense, rows, Optimizer()), InputError)
    if ended == "refused" and len(rows):
        raise Defect("a refused checkpoint left rows")
    if ended == "done" and not resealed and path.read_bytes() != content:
        raise Defect("a changed checkpoint is taken")
    if not all(np.isfinite(values).all() for values in rows.written()):
        raise Defect("numbers that are none are taken")
    return ended


def _changed(array: np.ndarray, chance: random.Random) -> np.ndarray:
    kind = chance.randrange(5)
    if kind == 0:
        return array.astype(chance.choice((np.float64, np.int8, np.bool_, "S8"))) if (
            array.dtype.kind != "U") else np.array(mutated_text(str(array), chance))
    if kind == 1:
        return array.reshape(-1)[:chance.randrange(4)]
    if kind == 2:
        return np.array(chance.choice(("", "{}", "[1]", "[" * 50_000, "null")))
    if kind == 3 and array.size and array.dtype.kind in "if":
        changed = array.copy().reshape(-1)
        changed[chance.randrange(changed.size)] = chance.choice(
            (-3, -1, 1 << 40, 0) if array.dtype.kind == "i" else (np.nan, np.inf, -np.inf, -1.0))
        return changed.reshape(array.shape)
    return np.array(chance.choice((np.nan, -1, 1 << 62)))


def stores(chance: random.Random, folder: Path) -> str:
    """Change a finished point of a sweep: the store returns the measured point, or no point."""
    store, spot, metrics = Store(folder, "v"), Spot("a", 0.5), {"us": 12.25, "runs": [1, 2, None]}
    store.put(spot, metrics)
    path = next(folder.rglob("*.json"))
    path.write_bytes(mutated(path.read_bytes(), chance))
    found: list[dict | None] = []
    refusal(lambda: found.append(store.get(spot)))
    if found[0] not in (None, metrics):
        raise Defect(f"a changed point gives {found[0]}")
    return "refused" if found[0] is None else "done"


def predictions(chance: random.Random, folder: Path) -> str:
    """Change the predictions of a stopped run."""
    path = folder / "p.csv"
    text = b"sample,prediction\n" + b"".join(b"%d,0.%d25\n" % (n, n) for n in range(12))
    path.write_bytes(mutated(text, chance))
    first = chance.randrange(14)

    def again() -> None:
        with PredictionFile(path, first, lambda: 0.25) as file:
            file(np.zeros(2, np.float32))

    return refusal(again, ValueError, OSError)
