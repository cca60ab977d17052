"""Checkpoints of training: the written rows and the weights of the MLPs, in one ``.npz``."""

import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType

import numpy as np

from host.dlrm.dense_trainer import DenseTrainer
from host.dlrm.mlp import Layer
from host.dlrm.optimizer import Optimizer
from host.dlrm.row_store import RowStore
from host.errors import InputError

__all__ = ["load_checkpoint", "save_checkpoint"]

_VERSION = 1
_NOTHING: Mapping[str, object] = MappingProxyType({})


def save_checkpoint(path: str | Path, steps: int, dense: DenseTrainer, rows: RowStore,
                    optimizer: Optimizer, run: Mapping[str, object] = _NOTHING) -> None:
    """Write the state after ``steps`` steps to ``path`` atomically.

    ``run``: further JSON values that a resumed run must have in common. The same state gives the
    same bytes. Raises ``OSError`` if the file cannot be written.
    """
    keys, vectors, states = rows.written()
    arrays = {"about": np.array(json.dumps(_about(dense, rows, optimizer, run))),
              "steps": np.array(steps, np.int64), "keys": keys, "vectors": vectors,
              "states": states}
    for name, layers in _mlps(dense):
        for number, layer in enumerate(layers):
            arrays |= {f"{name}_{number}_weights": layer.weights,
                       f"{name}_{number}_biases": layer.biases}
    part = Path(f"{path}.part")
    with part.open("wb") as file:
        np.savez(file, **arrays)
    part.replace(path)


def load_checkpoint(path: str | Path, dense: DenseTrainer, rows: RowStore,
                    optimizer: Optimizer, run: Mapping[str, object] = _NOTHING) -> int:
    """Read `save_checkpoint`'s file into ``dense`` and the empty ``rows``.

    Returns the number of completed steps.

    Raises
    ------
    InputError
        The file is not a checkpoint, or of another model, seed, optimizer or ``run``; says which.
    ValueError
        ``rows`` is not empty.
    """
    if len(rows):
        raise ValueError(f"rows must be none before a checkpoint is read, not {len(rows)}")
    arrays, about = _read(path)
    for field, value in _about(dense, rows, optimizer, run).items():
        found = about.get(field)
        if found != value:
            raise InputError(path, 0, 0, f"{field} is {found!r}, not {value!r} as in this run")
    layers = {name: [_layer(path, arrays, f"{name}_{number}", layer)
                     for number, layer in enumerate(old)] for name, old in _mlps(dense)}
    keys = _array(path, arrays, "keys", np.int64, (-1,))
    vectors = _array(path, arrays, "vectors", np.float32, (len(keys), rows.model.dimension))
    states = _array(path, arrays, "states", np.float32, (len(keys),))
    if (np.diff(keys) <= 0).any():
        raise InputError(path, 0, 0, "keys must ascend")
    try:
        rows.read(keys)
    except ValueError as error:
        raise InputError(path, 0, 0, str(error)) from None
    steps = int(_array(path, arrays, "steps", np.int64, ()))
    rows.write(keys, vectors, states)
    for name, old in _mlps(dense):
        old[:] = layers[name]
    return steps


def _read(path: str | Path) -> tuple[dict[str, np.ndarray], dict]:
    """Return the arrays of a checkpoint, and its description."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
    except OSError as error:
        raise InputError(path, 0, 0, error.strerror or str(error)) from None
    except (ValueError, TypeError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error):
        # TypeError: a single array without an archive.
        raise InputError(path, 0, 0, "is not a checkpoint") from None
    try:
        about = json.loads(str(arrays["about"]))
    except (KeyError, ValueError):
        about = None
    if not isinstance(about, dict):
        raise InputError(path, 0, 0, "is not a checkpoint: about is missing or not a JSON object")
    return arrays, about


def _about(dense: DenseTrainer, rows: RowStore, optimizer: Optimizer,
           run: Mapping[str, object]) -> dict:
    """Return what a checkpoint must have in common with the run that resumes from it."""
    about = {"version": _VERSION, "seed": rows.seed, "mlp": dense.dlrm.mlp,
             **{f"model.{name}": value for name, value in asdict(rows.model).items()},
             **{f"optimizer.{name}": value for name, value in asdict(optimizer).items()},
             **{f"run.{name}": value for name, value in run.items()}}
    return json.loads(json.dumps(about))  # as read from a file: tuples become lists


def _mlps(dense: DenseTrainer) -> list[tuple[str, list[Layer]]]:
    return [("bottom", dense.dlrm.bottom_layers), ("top", dense.dlrm.top_layers)]


def _layer(path: str | Path, arrays: dict, name: str, old: Layer) -> Layer:
    return Layer(*(_array(path, arrays, f"{name}_{part}", np.float32, shape) for part, shape in (
        ("weights", old.weights.shape), ("biases", old.biases.shape))))


def _array(path: str | Path, arrays: dict, name: str, dtype: type,
           shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of the file; -1 in ``shape`` allows any length."""
    array = arrays.get(name)
    if array is None:
        raise InputError(path, 0, 0, f"is not a checkpoint: {name} is missing")
    fits = len(array.shape) == len(shape) and all(
        want in (-1, have) for want, have in zip(shape, array.shape))
    if array.dtype != dtype or not fits:
        raise InputError(path, 0, 0, f"{name} must be {np.dtype(dtype)} of shape {shape!r}, not "
                                     f"{array.dtype} of {array.shape!r}")
    return array
