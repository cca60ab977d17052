"""The shape of a DLRM: tables, vector dimension, interaction, and the two MLPs."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from host.toml.schema import read_toml
from rtl.config import LANES, ROW_BITS, TABLE_BITS

__all__ = ["AVAZU_ROWS", "INTERACTIONS", "KAGGLE_ROWS", "MODELS", "MOST_VALUES", "POOLINGS",
           "RULES", "TERABYTE_ROWS", "Model", "TableFile", "load_model", "model_files",
           "model_names", "padded"]

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


POOLINGS = ("sum", "mean")
"""Operations that pool the vectors of a bag."""

INTERACTIONS = ("dot", "cat")
"""Operations that combine a sample's dense and pooled vectors: DLRM's ``arch_interaction_op``."""

MOST_VALUES = 256
"""Values of a vector at most."""

RULES = ("clicks", "first_key", "drawn", "histogram")
"""How generated samples draw the keys of a bag, see :mod:`host.data.rules`."""


def padded(dimension: int) -> int:
    """Return the dimension of a NIC for vectors of ``dimension`` values: 4, 8 or a multiple of 16.
    """
    for held in (4, 8):
        if dimension <= held:
            return held
    return -(-dimension // LANES) * LANES


@dataclass(frozen=True)
class Model:
    """Shape of a DLRM (Naumov et al. 2019; paper, table 1).

    Members
    -------
    name: appears in reports and selects a reader's defaults.
    rows: rows of each embedding table.
    dimension: float32 values of a dense vector, and of the vectors of each table without an own
        dimension: 1 to 256.
    dense: number of dense features.
    bottom: widths of the bottom MLP's layers after its input; the last is ``dimension``.
    top: widths of the top MLP's layers after its input; the last is 1.
    bags: minimum and maximum keys of a generated sample in each table; empty means a single key in
        every table. Samples from files have their own bags.
    pooling: ``sum``, or ``mean``: the sum divided by float32 of the number of keys.
    dimensions: float32 values of a vector of each table; empty if all have ``dimension``. Other
        dimensions require the interaction ``cat``.
    poolings: pooling of each table; empty if all have ``pooling``.
    interaction: ``dot``: the dense vector and the dot products of all pairs of vectors; ``cat``:
        the concatenation of all vectors.
    interaction_itself: whether dots include pairs of a vector with itself
        (``arch_interaction_itself``).
    rule: rule by which generated samples draw the keys of a bag, one of `RULES`.
    requests: samples of each request; empty means that each sample is a request. Generated samples
        of a request are consecutive, and each length occurs once in as many requests.
    request_tables: tables in which all generated samples of a request have the same bag.
    mini_batches: samples of the global mini-batches for which the workload is evaluated.

    Raises
    ------
    TypeError, ValueError
        A field has the wrong type, is out of range, or contradicts another field.
    """

    rows: tuple[int, ...]
    dimension: int
    dense: int
    bottom: tuple[int, ...]
    top: tuple[int, ...]
    name: str = "custom"
    bags: tuple[tuple[int, int], ...] = ()
    pooling: str = "sum"
    interaction: str = "dot"
    interaction_itself: bool = False
    rule: str = "clicks"
    requests: tuple[int, ...] = ()
    request_tables: tuple[int, ...] = ()
    mini_batches: tuple[int, ...] = ()
    dimensions: tuple[int, ...] = ()
    poolings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"name must be a string, not {self.name!r}")
        for field in ("rows", "bottom", "top"):
            value = getattr(self, field)
            if not isinstance(value, tuple):
                raise TypeError(f"{field} must be a tuple of integers, not {value!r}")
            high = (1 << ROW_BITS) - 1 if field == "rows" else 1 << 16
            for index, item in enumerate(value):
                _in_range(f"{field}[{index}]", item, 1, high)
        _in_range("rows (number of tables)", len(self.rows), 1, 1 << TABLE_BITS)
        _in_range("dimension", self.dimension, 1, MOST_VALUES)
        _in_range("dense", self.dense, 1, 1 << 16)
        if not self.bottom or self.bottom[-1] != self.dimension:
            raise ValueError(f"bottom must end in the dimension, {self.dimension}, "
                             f"not {self.bottom!r}")
        if not self.top or self.top[-1] != 1:
            raise ValueError(f"top must end in 1, not {self.top!r}")
        if self.bags and len(self.bags) != len(self.rows):
            raise ValueError(f"bags must have {len(self.rows)} entries, one per table, "
                             f"not {self.bags!r}")
        for index, bag in enumerate(self.bags):
            _bag(f"bags[{index}]", bag)
        _pooling("pooling", self.pooling)
        self._check_own()
        if self.interaction not in INTERACTIONS:
            raise ValueError(f"interaction must be {' or '.join(INTERACTIONS)}, "
                             f"not {self.interaction!r}")
        if not isinstance(self.interaction_itself, bool):
            raise TypeError(f"interaction_itself must be true or false, "
                            f"not {self.interaction_itself!r}")
        if self.interaction_itself and self.interaction != "dot":
            raise ValueError(f"interaction_itself must go with the interaction dot, "
                             f"not {self.interaction!r}")
        if self.rule not in RULES:
            raise ValueError(f"rule must be one of {', '.join(RULES)}, not {self.rule!r}")
        for name in ("requests", "mini_batches"):
            for index, item in enumerate(getattr(self, name)):
                _in_range(f"{name}[{index}]", item, 1, 1 << 20)
        if self.request_tables and not self.requests:
            raise ValueError("requests must be given: tables have the same bag in all samples of "
                             "a request")
        for index, table in enumerate(self.request_tables):
            _in_range(f"request_tables[{index}]", table, 0, self.tables - 1)

    def _check_own(self) -> None:
        """Check dimension and pooling of each table, and drop them where all are the model's."""
        for field in ("dimensions", "poolings"):
            if getattr(self, field) and len(getattr(self, field)) != len(self.rows):
                raise ValueError(f"{field} must have {len(self.rows)} entries, one per table, "
                                 f"not {getattr(self, field)!r}")
        for index, dimension in enumerate(self.dimensions):
            _in_range(f"dimensions[{index}]", dimension, 1, MOST_VALUES)
            if dimension != self.dimension and self.interaction == "dot":
                raise ValueError(f"dimensions[{index}] must be that of the model, "
                                 f"{self.dimension}, for the interaction dot, not {dimension}: "
                                 f"use the interaction cat")
        for index, pooling in enumerate(self.poolings):
            _pooling(f"poolings[{index}]", pooling)
        if set(self.dimensions) == {self.dimension}:
            object.__setattr__(self, "dimensions", ())
        if len(set(self.poolings)) == 1:
            object.__setattr__(self, "pooling", self.poolings[0])
            object.__setattr__(self, "poolings", ())

    @property
    def tables(self) -> int:
        """Number of embedding tables."""
        return len(self.rows)

    @property
    def table_dimensions(self) -> tuple[int, ...]:
        """Values of a vector of each table."""
        return self.dimensions or (self.dimension,) * self.tables

    @property
    def width(self) -> int:
        """Values of a vector in NICs: the largest dimension of the tables, at least 4, 8 or the
        next multiple of 16. Narrower vectors are padded with zeros.
        """
        return padded(max(self.table_dimensions))

    @property
    def nic_pooling(self) -> str:
        """Pooling of the NICs: ``sum`` if tables differ; hosts then divide the sums of means."""
        return "sum" if self.poolings else self.pooling

    @property
    def mixed(self) -> bool:
        """Whether tables differ, so that NICs cannot compute the interaction."""
        return bool(self.dimensions or self.poolings) or (
            self.interaction == "cat" and self.width != self.dimension)

    @property
    def padding(self) -> str | None:
        """Sentence on the padding of vectors in NICs, or None."""
        least, most = min(self.table_dimensions), max(self.table_dimensions)
        if least == self.width:
            return None
        return (f"NICs send vectors of {least}{f' to {most}' if most > least else ''} values "
                f"padded with zeros to {self.width}")

    @property
    def mlp_parameters(self) -> int:
        """Weights and biases of both MLPs."""
        return sum((inputs + 1) * outputs
                   for inputs, outputs in (*self.bottom_layers, *self.top_layers))

    @property
    def interaction_width(self) -> int:
        """Width of a sample's interaction, the input of the top MLP.

        With ``dot``: the dense vector and a dot product per pair. With ``cat``: all vectors.
        """
        vectors = self.tables + 1
        if self.interaction == "cat":
            return self.dimension + sum(self.table_dimensions)
        return self.dimension + vectors * (vectors + (1 if self.interaction_itself else -1)) // 2

    @property
    def bottom_layers(self) -> tuple[tuple[int, int], ...]:
        """(inputs, outputs) of each layer of the bottom MLP."""
        return tuple(zip((self.dense, *self.bottom), self.bottom))

    @property
    def top_layers(self) -> tuple[tuple[int, int], ...]:
        """(inputs, outputs) of each layer of the top MLP."""
        return tuple(zip((self.interaction_width, *self.top), self.top))

    def with_rows(self, rows: tuple[int, ...]) -> "Model":
        """Return this model with ``rows`` as its tables."""
        return replace(self, rows=tuple(rows))

    def with_tables(self, kept: Sequence[int], name: str) -> "Model":
        """Return this model with the tables of the numbers ``kept``, ascending, and a name."""
        own = {field: tuple(of[table] for table in kept) if (of := getattr(self, field)) else ()
               for field in ("rows", "bags", "dimensions", "poolings")}
        return replace(self, name=name, **own,
                       request_tables=tuple(kept.index(table) for table in self.request_tables
                                            if table in kept))

    @property
    def keys(self) -> float:
        """Mean keys of a generated sample."""
        return sum(map(sum, self.bags)) / 2 if self.bags else float(self.tables)


def _in_range(name: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    if not low <= value <= high:
        raise ValueError(f"{name} must be between {low} and {high}, not {value!r}")


def _pooling(name: str, pooling: object) -> None:
    if pooling not in POOLINGS:
        raise ValueError(f"{name} must be {' or '.join(POOLINGS)}, not {pooling!r}")


MODELS = {
    "kaggle": Model(KAGGLE_ROWS, 16, 13, (512, 256, 64, 16), (512, 256, 1), "kaggle"),
    "terabyte": Model(TERABYTE_ROWS, 64, 13, (512, 256, 64), (512, 512, 256, 1), "terabyte"),
    "avazu": Model(AVAZU_ROWS, 16, 1, (512, 256, 64, 16), (512, 256, 1), "avazu"),
    # Users and movies of ml-latest-small, numbered from 1.
    "movielens": Model((610 + 1, 193609 + 1), 16, 1, (64, 16), (64, 1), "movielens"),
    "trace": Model((1 << 20,) * 8, 16, 1, (64, 16), (64, 1), "trace"),
}
"""The built-in models. ``trace`` is for key traces that have no model of their own."""


_MOST_KEYS = 1 << 12


def _bag(name: str, bag: tuple[int, ...]) -> None:
    """Check the minimum and maximum number of keys of ``bag``."""
    if not isinstance(bag, tuple) or len(bag) != 2:
        raise TypeError(f"{name} must be the minimum and the maximum number of keys, not {bag!r}")
    for value in bag:
        _in_range(name, value, 0, _MOST_KEYS)
    if bag[0] > bag[1]:
        raise ValueError(f"{name} must give the minimum first, not {bag!r}")


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
    dimension, pooling: of the table; None means the model's.
    """

    rows: int
    name: str = ""
    bag: int | tuple[int, int] = 1
    count: int = 1
    request: bool = False
    dimension: int | None = None
    pooling: str | None = None

    def __post_init__(self) -> None:
        _in_range("rows", self.rows, 1, (1 << ROW_BITS) - 1)
        _bag("bag", self.keys)
        _in_range("count", self.count, 1, 1 << TABLE_BITS)
        if self.dimension is not None:
            _in_range("dimension", self.dimension, 1, MOST_VALUES)
        if self.pooling is not None:
            _pooling("pooling", self.pooling)

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
                      tuple(table.pooling or self.pooling for table in tables))
        object.__setattr__(self, "model", model)


def _folder():
    # Not a package name: a user's program may shadow it, see embernic_names.
    return Path(__file__).parent / "models"


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
    if name in model_names():
        return read_toml(str(_folder() / f"{name}.toml"), _ModelFile).model
    if _is_file(name):
        return read_toml(name, _ModelFile).model
    raise ValueError(f"model must be one of {', '.join(model_names())} or a TOML file, "
                     f"not {name!r}")
