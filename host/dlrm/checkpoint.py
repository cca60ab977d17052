"""Checkpoints of training: the written rows and the weights of the MLPs, in one sealed ``.npz``."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, NamedTuple

import numpy as np

from host.dlrm.dense_trainer import DenseTrainer
from host.dlrm.mlp import Layer
from host.dlrm.optimizer import Optimizer
from host.dlrm.row_store import RowStore
from host.errors import InputError
from host.sealed import read_sealed, write_sealed

__all__ = ["Resumed", "load_checkpoint", "save_checkpoint"]

_VERSION = 2
_NOTHING: Mapping[str, object] = MappingProxyType({})


class Resumed(NamedTuple):
    """Where a training goes on.

    Members: ``steps`` done; ``samples``, a hash of the samples that they were made from.
    """

    steps: int
    samples: str


def save_checkpoint(file: BinaryIO, steps: int, dense: DenseTrainer, rows: RowStore,
                    optimizer: Optimizer, run: Mapping[str, object] = _NOTHING,
                    samples: str = "") -> None:
    """Write the state after ``steps`` steps to the empty ``file``, open for reading too.

    ``run``: further JSON values that a resumed run must have in common; ``samples``: a hash of the
    samples of the steps. The same state gives the same bytes.
    """
    keys, vectors, states = rows.written()
    arrays = {"about": np.array(json.dumps(_about(dense, rows, optimizer, run))),
              "steps": np.array(steps, np.int64), "samples": np.array(samples), "keys": keys,
              "vectors": vectors, "states": states}
    for name, layers in _mlps(dense):
        for number, layer in enumerate(layers):
            arrays |= {f"{name}_{number}_weights": layer.weights,
                       f"{name}_{number}_biases": layer.biases}
    write_sealed(file, arrays)


def load_checkpoint(path: str | Path, dense: DenseTrainer, rows: RowStore,
                    optimizer: Optimizer, run: Mapping[str, object] = _NOTHING) -> Resumed:
    """Read `save_checkpoint`'s file into ``dense`` and the empty ``rows``.

    Raises
    ------
    InputError
        The file is not a checkpoint, is damaged, or of another model, seed, optimizer or ``run``;
        says which.
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
    for name, values in (("vectors", vectors), ("states", states)):
        _finite(path, name, values)
    if (states < 0).any():
        raise InputError(path, 0, 0, f"states must be at least 0, not {states.min()}")
    steps = int(_array(path, arrays, "steps", np.int64, ()))
    if steps < 1:
        raise InputError(path, 0, 0, f"steps must be at least 1, not {steps}")
    rows.write(keys, vectors, states)
    for name, old in _mlps(dense):
        old[:] = layers[name]
    return Resumed(steps, str(arrays["samples"]) if "samples" in arrays else "")


def _read(path: str | Path) -> tuple[dict[str, np.ndarray], dict]:
    """Return the arrays of a checkpoint, and its description."""
    arrays = read_sealed(path, "a checkpoint")
    try:
        about = json.loads(str(arrays["about"]))
    except (KeyError, ValueError, RecursionError):
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
    found = {part: _array(path, arrays, f"{name}_{part}", np.float32, shape) for part, shape in (
        ("weights", old.weights.shape), ("biases", old.biases.shape))}
    for part, values in found.items():
        _finite(path, f"{name}_{part}", values)
    return Layer(**found)


def _finite(path: str | Path, name: str, values: np.ndarray) -> None:
    wrong = ~np.isfinite(values)
    if wrong.any():
        at = tuple(int(i) for i in np.unravel_index(int(wrong.argmax()), values.shape))
        raise InputError(path, 0, 0, f"{name} must be finite, not {values[at]} at "
                                     f"{', '.join(map(str, at))}")


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
