"""The shape of a DLRM: tables, vector dimension, interaction, and the two MLPs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rtl.config import LANES, ROW_BITS, TABLE_BITS, beats_of

__all__ = ["INTERACTIONS", "MOST_VALUES", "POOLINGS", "RULES", "Model", "check_bag",
           "check_pooling", "check_range", "padded"]

_MOST_KEYS = 1 << 12
"""Keys of a bag at most."""

POOLINGS = ("sum", "mean")
"""Operations that pool the vectors of a bag."""

INTERACTIONS = ("dot", "cat")
"""Operations that combine a sample's dense and pooled vectors: DLRM's ``arch_interaction_op``."""

MOST_VALUES = 256
"""Values of a vector at most."""

_OWNERS = f" (on the network, bags pooled at owners: to a multiple of {LANES})"
"""Exception to the padding of vectors."""

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
    weighted_tables: tables whose bags have a weight for each key.
    host_means: whether hosts divide the sums of means although all tables have the same
        ``pooling``.
    mini_batches: samples of the global mini-batches for which the workload is evaluated.
    slices: original table and first column of each table, if tables are column slices, see
        :func:`host.model.columns.with_columns`; empty means that all tables are whole.
    first_rows: first row of each table in its original table, if tables are row blocks, see
        :func:`host.model.blocks.with_blocks`; empty means that all tables have all rows.

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
    weighted_tables: tuple[int, ...] = ()
    host_means: bool = False
    slices: tuple[tuple[int, int], ...] = ()
    first_rows: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"name must be a string, not {self.name!r}")
        for field in ("rows", "bottom", "top"):
            value = getattr(self, field)
            if not isinstance(value, tuple):
                raise TypeError(f"{field} must be a tuple of integers, not {value!r}")
            high = (1 << ROW_BITS) - 1 if field == "rows" else 1 << 16
            for index, item in enumerate(value):
                check_range(f"{field}[{index}]", item, 1, high)
        check_range("rows (number of tables)", len(self.rows), 1, 1 << TABLE_BITS)
        check_range("dimension", self.dimension, 1, MOST_VALUES)
        check_range("dense", self.dense, 1, 1 << 16)
        if not self.bottom or self.bottom[-1] != self.dimension:
            raise ValueError(f"bottom must end in the dimension, {self.dimension}, "
                             f"not {self.bottom!r}")
        if not self.top or self.top[-1] != 1:
            raise ValueError(f"top must end in 1, not {self.top!r}")
        if self.bags and len(self.bags) != len(self.rows):
            raise ValueError(f"bags must have {len(self.rows)} entries, one per table, "
                             f"not {self.bags!r}")
        for index, bag in enumerate(self.bags):
            check_bag(f"bags[{index}]", bag)
        check_pooling("pooling", self.pooling)
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
                check_range(f"{name}[{index}]", item, 1, 1 << 20)
        if self.request_tables and not self.requests:
            raise ValueError("requests must be given: tables have the same bag in all samples of "
                             "a request")
        for name in ("request_tables", "weighted_tables"):
            for index, table in enumerate(getattr(self, name)):
                check_range(f"{name}[{index}]", table, 0, self.tables - 1)

    def _check_own(self) -> None:
        """Check dimension and pooling of each table, and drop them where all are the model's."""
        for field in ("dimensions", "poolings"):
            if getattr(self, field) and len(getattr(self, field)) != len(self.rows):
                raise ValueError(f"{field} must have {len(self.rows)} entries, one per table, "
                                 f"not {getattr(self, field)!r}")
        for index, dimension in enumerate(self.dimensions):
            check_range(f"dimensions[{index}]", dimension, 1, MOST_VALUES)
            if dimension != self.dimension and self.interaction == "dot" and not self.slices:
                raise ValueError(f"dimensions[{index}] must be that of the model, "
                                 f"{self.dimension}, for the interaction dot, not {dimension}: "
                                 f"use the interaction cat")
        for index, pooling in enumerate(self.poolings):
            check_pooling(f"poolings[{index}]", pooling)
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
    def originals(self) -> tuple[int, ...]:
        """Number of the original table of each table, which differs with column slices."""
        return tuple(table for table, _ in self.slices) or tuple(range(self.tables))

    @property
    def firsts(self) -> tuple[int, ...]:
        """First row of each table in its original table, which differs with row blocks."""
        return self.first_rows or (0,) * self.tables

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
    def beats(self) -> tuple[int, ...]:
        """Beats of a bag's vector of each table in NICs."""
        return tuple(beats_of(padded(each)) for each in self.table_dimensions)

    @property
    def nic_pooling(self) -> str:
        """Pooling of the NICs: ``sum`` if tables differ. Hosts then divide the sums of means, or
        NICs that pool each table in its own way."""
        return "sum" if self.poolings or self.host_means else self.pooling

    @property
    def uneven(self) -> bool:
        """Whether NICs pad vectors, so that they cannot compute the interaction."""
        return bool(self.dimensions) or (
            self.interaction == "cat" and self.width != self.dimension)

    @property
    def mixed(self) -> bool:
        """Whether tables differ, so that NICs without ``owner_bags`` cannot compute the
        interaction."""
        return self.uneven or bool(self.poolings)

    @property
    def padding(self) -> str | None:
        """Sentence on the padding of vectors in NICs, or None."""
        least, most = min(self.table_dimensions), max(self.table_dimensions)
        if least == self.width:
            return None
        less = padded(least) < self.width > LANES
        return (f"NICs pad vectors of {least}{f' to {most}' if most > least else ''} values with "
                f"zeros to {self.width}{_OWNERS * less}")

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
        if self.interaction == "cat":
            return self.dimension + sum(
                dimension for dimension, first in zip(self.table_dimensions, self.firsts)
                if first == 0)
        vectors = self.dot_vectors
        return self.dimension + vectors * (vectors + (1 if self.interaction_itself else -1)) // 2

    @property
    def dot_vectors(self) -> int:
        """Vectors whose pairs have dots; column slices and row blocks of a table are a vector."""
        return len(set(self.originals)) + 1

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

    def with_host_means(self) -> "Model":
        """Return this model with means that hosts make of the NICs' sums.

        The gradients that NICs get are then divided already: the gradients of repeated bags can be
        added, and their records need no bit for it."""
        return replace(self, host_means=self.nic_pooling == "mean" or self.host_means)

    def with_tables(self, kept: Sequence[int], name: str | None = None) -> "Model":
        """Return this model with the tables of the numbers ``kept``, ascending, of which some may
        occur more than once. ``name``: None for the name of this model."""
        own = {field: tuple(of[table] for table in kept) if (of := getattr(self, field)) else ()
               for field in ("rows", "bags", "dimensions", "poolings", "slices", "first_rows")}
        own |= {field: tuple(number for number, table in enumerate(kept)
                             if table in getattr(self, field))
                for field in ("request_tables", "weighted_tables")}
        return replace(self, name=self.name if name is None else name, **own)

    @property
    def keys(self) -> float:
        """Mean keys of a generated sample."""
        return sum(map(sum, self.bags)) / 2 if self.bags else float(self.tables)


def check_range(name: str, value: object, low: int, high: int) -> None:
    """Raise ``TypeError`` for no integer, ``ValueError`` unless it is between ``low`` and ``high``.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    if not low <= value <= high:
        raise ValueError(f"{name} must be between {low} and {high}, not {value!r}")


def check_pooling(name: str, pooling: object) -> None:
    """Raise ``ValueError`` unless ``pooling`` is one of `POOLINGS`."""
    if pooling not in POOLINGS:
        raise ValueError(f"{name} must be {' or '.join(POOLINGS)}, not {pooling!r}")


def check_bag(name: str, bag: tuple[int, ...]) -> None:
    """Check the minimum and maximum number of keys of ``bag``."""
    if not isinstance(bag, tuple) or len(bag) != 2:
        raise TypeError(f"{name} must be the minimum and the maximum number of keys, not {bag!r}")
    for value in bag:
        check_range(name, value, 0, _MOST_KEYS)
    if bag[0] > bag[1]:
        raise ValueError(f"{name} must give the minimum first, not {bag!r}")
