"""Models by name: the built-in models, and TOML files."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from host.model.shape import MOST_VALUES, Model, check_bag, check_pooling, check_range
from host.toml.schema import read_toml
from rtl.config import ROW_BITS, TABLE_BITS

__all__ = ["AVAZU_ROWS", "KAGGLE_ROWS", "MODELS", "TERABYTE_ROWS", "TableFile", "load_model",
           "model_files", "model_names", "table_names"]

KAGGLE_ROWS = (
    1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194, 27, 14992,
    5461306, 10, 5652, 2173, 4, 7046547, 18, 15, 286181, 105, 142572)
"""Cardinalities of the 26 categorical columns of Criteo Kaggle; they sum to 33,762,577."""

TERABYTE_ROWS = (
    45833188, 36746, 17245, 7413, 20243, 3, 7114, 1441, 62, 29275261, 1572176, 345138, 10, 2209,
    11267, 128, 4, 974, 14, 48937457, 11316796, 40094537, 452104, 12606, 104, 35)
"""A published set of cardinalities of Criteo Terabyte; they sum to 177,944,275."""

AVAZU_ROWS = (
    7, 7, 4737, 7745, 26, 8552, 559, 36, 2686408, 6729486, 8251, 5, 4,
    2626, 8, 9, 435, 4, 68, 172, 60)
"""Cardinalities of the 21 sparse columns of Avazu, C1 to C21 without ``id`` and ``hour``. The
values of C14 to C21 are commonly published, not verified.
"""

MODELS = {
    "kaggle": Model(KAGGLE_ROWS, 16, 13, (512, 256, 64, 16), (512, 256, 1), "kaggle"),
    "terabyte": Model(TERABYTE_ROWS, 64, 13, (512, 256, 64), (512, 512, 256, 1), "terabyte"),
    "avazu": Model(AVAZU_ROWS, 16, 1, (512, 256, 64, 16), (512, 256, 1), "avazu"),
    # Users and movies of ml-latest-small, numbered from 1.
    "movielens": Model((610 + 1, 193609 + 1), 16, 1, (64, 16), (64, 1), "movielens"),
    "trace": Model((1 << 20,) * 8, 16, 1, (64, 16), (64, 1), "trace"),
}
"""The built-in models. ``trace`` is for key traces that have no model of their own."""


@dataclass(frozen=True)
class TableFile:
    """A ``[[tables]]`` entry of a model file.

    Members
    -------
    rows: number of rows.
    name: label for readers of the file.
    bag: number of keys of a generated sample, or minimum and maximum.
    count: number of tables of this kind.
    request: whether all generated samples of a request have the same bag.
    weighted: whether a bag has a weight for each key.
    dimension, pooling: of the table; None means the model's.
    """

    rows: int
    name: str = ""
    bag: int | tuple[int, int] = 1
    count: int = 1
    request: bool = False
    weighted: bool = False
    dimension: int | None = None
    pooling: str | None = None

    def __post_init__(self) -> None:
        check_range("rows", self.rows, 1, (1 << ROW_BITS) - 1)
        check_bag("bag", self.keys)
        check_range("count", self.count, 1, 1 << TABLE_BITS)
        if self.dimension is not None:
            check_range("dimension", self.dimension, 1, MOST_VALUES)
        if self.pooling is not None:
            check_pooling("pooling", self.pooling)

    @property
    def keys(self) -> tuple[int, int]:
        """Minimum and maximum keys of a bag."""
        return (self.bag, self.bag) if isinstance(self.bag, int) else self.bag


@dataclass(frozen=True)
class _ModelFile:
    """A model file: the members of `Model`, with tables as ``rows`` or as ``[[tables]]``."""

    dimension: int
    dense: int
    bottom: tuple[int, ...]
    top: tuple[int, ...]
    name: str = "custom"
    rows: tuple[int, ...] = ()
    tables: tuple[TableFile, ...] = ()
    pooling: str = "sum"
    interaction: str = "dot"
    interaction_itself: bool = False
    rule: str = "clicks"
    requests: tuple[int, ...] = ()
    mini_batches: tuple[int, ...] = ()
    model: Model = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        if self.rows and self.tables:
            raise ValueError("rows and tables must not both be given")
        for index, table in enumerate(self.tables):
            if self.interaction == "dot" and table.dimension not in (None, self.dimension):
                raise ValueError(f"tables[{index}].dimension must be that of the model, "
                                 f"{self.dimension}, for the interaction dot, not "
                                 f"{table.dimension}: use interaction = \"cat\"")
        tables = [table for table in self.tables for _ in range(table.count)]
        bags = tuple(table.keys for table in tables)
        model = Model(self.rows or tuple(table.rows for table in tables), self.dimension,
                      self.dense, self.bottom, self.top, self.name,
                      () if set(bags) == {(1, 1)} else bags, self.pooling, self.interaction,
                      self.interaction_itself, self.rule, self.requests,
                      tuple(number for number, table in enumerate(tables) if table.request),
                      self.mini_batches,
                      tuple(table.dimension or self.dimension for table in tables),
                      tuple(table.pooling or self.pooling for table in tables),
                      tuple(number for number, table in enumerate(tables) if table.weighted))
        object.__setattr__(self, "model", model)


def _folder():
    # Not a package name: a user's program may shadow it, see embernic_names.
    return Path(__file__).parents[1] / "models"


def model_names() -> list[str]:
    """Return the names of the built-in models and the shipped model files."""
    return [*MODELS, *sorted(file.name.removesuffix(".toml") for file in _folder().iterdir()
                             if file.name.endswith(".toml"))]


def model_files(name_or_path: "str | Path | Model") -> tuple[str, ...]:
    """Return the file of the user that `load_model` reads; empty for a model that ships."""
    name = str(name_or_path)
    if isinstance(name_or_path, Model) or name in model_names() or not _is_file(name):
        return ()
    return (name,)


def _is_file(name: str) -> bool:
    """Return whether a name that is no model's is read as a file."""
    return name.endswith(".toml") or (bool(name) and Path(name).exists())


def load_model(name_or_path: "str | Path | Model") -> Model:
    """Return the model of that name, or read a TOML file; a `Model` is returned unchanged.

    Raises
    ------
    ValueError
        Neither a known name nor the name of a TOML file.
    InputError
        The file is malformed; the error contains the position.
    """
    if isinstance(name_or_path, Model):
        return name_or_path
    name = str(name_or_path)
    if name in MODELS:
        return MODELS[name]
    if (file := _model_file(name)) is not None:
        return file.model
    raise ValueError(f"model must be one of {', '.join(model_names())} or a TOML file, "
                     f"not {name!r}")


def table_names(name_or_path: "str | Path | Model") -> tuple[str, ...]:
    """Return the name of each table in the file of a model; empty for a model without table names.
    """
    name = str(name_or_path)
    file = None if isinstance(name_or_path, Model) or name in MODELS else _model_file(name)
    return () if file is None else tuple(
        table.name for table in file.tables for _ in range(table.count))


def _model_file(name: str) -> _ModelFile | None:
    """Return the content of a shipped or a given model file; None if the file does not exist."""
    if name in model_names() and name not in MODELS:
        return read_toml(str(_folder() / f"{name}.toml"), _ModelFile)
    return read_toml(name, _ModelFile) if _is_file(name) else None
