"""Checkpoints of training: written rows and MLP weights, in an ``.npz`` file with a checksum."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, NamedTuple

import numpy as np

from host.dlrm.dense_trainer import DenseTrainer
from host.dlrm.mlp import Layer
from host.dlrm.optimizer import Optimizer
from host.dlrm.row_store import RowStore
from host.errors import InputError
from host.sealed import Parts, Sealed, open_sealed, write_sealed

__all__ = ["Resumed", "load_checkpoint", "save_checkpoint"]

_VERSION = 2
_ROWS = 1 << 16
"""Rows that are read or written at once."""
_NOTHING: Mapping[str, object] = MappingProxyType({})


class Resumed(NamedTuple):
    """State of a resumed training.

    Members: ``steps``: completed steps; ``samples``: hash of the samples of these steps.
    """

    steps: int
    samples: str


def save_checkpoint(file: BinaryIO, steps: int, dense: DenseTrainer, rows: RowStore,
                    optimizer: Optimizer, run: Mapping[str, object] = _NOTHING,
                    samples: str = "") -> None:
    """Write the state after ``steps`` steps to the empty ``file``, which must also be readable.

    The same state gives the same bytes.

    run: further JSON values that a resumed run must share.
    samples: hash of the samples of the steps.
    """
    arrays: dict[str, np.ndarray | Parts] = {
        "about": np.array(json.dumps(_about(dense, rows, optimizer, run))),
        "steps": np.array(steps, np.int64), "samples": np.array(samples)}
    for number, (name, (dtype, shape)) in enumerate(_forms(rows).items()):
        arrays[name] = Parts((len(rows), *shape[1:]), np.dtype(dtype),
                             map(itemgetter(number), rows.parts(_ROWS)))
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
        The file is not a checkpoint, is damaged, or belongs to another model, seed, optimizer or
        ``run``; the message states which.
    ValueError
        ``rows`` is not empty.
    """
    if len(rows):
        raise ValueError(f"rows must be empty before a checkpoint is loaded, not {len(rows)}")
    with open_sealed(path, "a checkpoint") as arrays:
        about = _text(path, arrays, "about")
        for field, value in _about(dense, rows, optimizer, run).items():
            found = about.get(field)
            if found != value:
                raise InputError(path, 0, 0,
                                 f"{field} is {found!r}, not {value!r} as in this run")
        layers = {name: [_layer(path, arrays, f"{name}_{number}", layer)
                         for number, layer in enumerate(old)] for name, old in _mlps(dense)}
        steps = int(_array(path, arrays, "steps", np.int64, ()))
        if steps < 1:
            raise InputError(path, 0, 0, f"steps must be at least 1, not {steps}")
        _check_rows(path, arrays, rows)
        samples = str(arrays.array("samples")) if arrays.form("samples") else ""
        for parts in zip(*(arrays.parts(name, _ROWS) for name in _forms(rows))):
            rows.write(*parts)
    for name, old in _mlps(dense):
        old[:] = layers[name]
    return Resumed(steps, samples)


def _forms(rows: RowStore) -> dict[str, tuple[type, tuple[int, ...]]]:
    """Return type and shape of the arrays of written rows; -1 stands for their number."""
    return {"keys": (np.int64, (-1,)), "vectors": (np.float32, (-1, rows.model.width)),
            "states": (np.float32, (-1,))}


def _check_rows(path: str | Path, arrays: Sealed, rows: RowStore) -> None:
    """Raise `InputError` unless the written rows of a checkpoint are valid for ``rows``."""
    number = -1
    for name, (dtype, shape) in _forms(rows).items():
        _, found = _form(path, arrays, name, dtype, (number, *shape[1:]))
        number = found[0]
    last, first = -1, 0
    for keys, vectors, states in zip(*(arrays.parts(name, _ROWS) for name in _forms(rows))):
        if keys[0] <= last or (np.diff(keys) <= 0).any():
            raise InputError(path, 0, 0, "keys must be in ascending order")
        try:
            rows.read(keys)
        except ValueError as error:
            raise InputError(path, 0, 0, str(error)) from None
        for name, values in (("vectors", vectors), ("states", states)):
            _finite(path, name, values, first)
        if (states < 0).any():
            raise InputError(path, 0, 0, f"states must be at least 0, not {states.min()}")
        last, first = keys[-1], first + len(keys)


def _text(path: str | Path, arrays: Sealed, name: str) -> dict:
    """Return the description of a checkpoint."""
    try:
        about = json.loads(str(arrays.array(name))) if arrays.form(name) else None
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        about = None
    if not isinstance(about, dict):
        raise InputError(path, 0, 0, f"is not a checkpoint: {name} is missing or not a JSON object")
    return about


def _about(dense: DenseTrainer, rows: RowStore, optimizer: Optimizer,
           run: Mapping[str, object]) -> dict:
    """Return the values that a checkpoint must share with the run that resumes from it."""
    about = {"version": _VERSION, "seed": rows.seed, "mlp": dense.dlrm.mlp,
             **{f"model.{name}": value for name, value in asdict(rows.model).items()},
             # None, as in a checkpoint without these values.
             **{f"model.{name}": getattr(rows.model, name) or None
                for name in ("host_means", "slices", "first_rows")},
             **{f"optimizer.{name}": value for name, value in asdict(optimizer).items()},
             **{f"run.{name}": value for name, value in run.items()}}
    return json.loads(json.dumps(about))  # as read from a file: tuples become lists


def _mlps(dense: DenseTrainer) -> list[tuple[str, list[Layer]]]:
    return [("bottom", dense.dlrm.bottom_layers), ("top", dense.dlrm.top_layers)]


def _layer(path: str | Path, arrays: Sealed, name: str, old: Layer) -> Layer:
    found = {part: _array(path, arrays, f"{name}_{part}", np.float32, shape) for part, shape in (
        ("weights", old.weights.shape), ("biases", old.biases.shape))}
    for part, values in found.items():
        _finite(path, f"{name}_{part}", values)
    return Layer(**found)


def _finite(path: str | Path, name: str, values: np.ndarray, first: int = 0) -> None:
    """Raise `InputError` unless all values are finite; ``first``: number of their first row."""
    wrong = ~np.isfinite(values)
    if wrong.any():
        at = tuple(int(i) for i in np.unravel_index(int(wrong.argmax()), values.shape))
        place = ", ".join(map(str, (first + at[0], *at[1:])))
        raise InputError(path, 0, 0, f"{name} must be finite, not {values[at]} at {place}")


def _array(path: str | Path, arrays: Sealed, name: str, dtype: type,
           shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of the file."""
    _form(path, arrays, name, dtype, shape)
    return arrays.array(name)


def _form(path: str | Path, arrays: Sealed, name: str, dtype: type,
          shape: tuple[int, ...]) -> tuple[np.dtype, tuple[int, ...]]:
    """Return type and shape of an array of the file; -1 in ``shape`` allows any length."""
    form = arrays.form(name)
    if form is None:
        raise InputError(path, 0, 0, f"is not a checkpoint: {name} is missing")
    fits = len(form[1]) == len(shape) and all(
        want in (-1, have) for want, have in zip(shape, form[1]))
    if form[0] != dtype or not fits:
        raise InputError(path, 0, 0, f"{name} must be {np.dtype(dtype)} of shape {shape!r}, not "
                                     f"{form[0]} of {form[1]!r}")
    return form
