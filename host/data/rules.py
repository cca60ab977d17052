"""Rules by which the generator draws the keys of a bag, and the popularities that they use.

==============  ===================================================================================
rule            keys of a bag
==============  ===================================================================================
``clicks``      drawn for the entity of the sample, so that similar samples share rows
``first_key``   MLPerf DLRM-DCNv2: the first key as in ``clicks``; each further key is a function
                of the first, uniform over the table, so that equal first keys have equal bags
                (facebookresearch/dlrm, ``torchrec_dlrm/multi_hot.py``)
``drawn``       the first key as in ``clicks``; each further key is drawn alone, from the popularity
                of the table
``histogram``   each key drawn alone, with the frequencies of `USES`
==============  ===================================================================================
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from host.data.draws import Popularity, draw, hashes, scramble
from host.model import Model

__all__ = ["AVAZU", "CRITEO", "RULES", "TRACE_SAMPLES", "USES", "Column", "GeneratorProfile",
           "profile_for"]

USES = ((1.0, 0.069), (2.0, 0.044), (3.0, 0.068), (6.0, 0.101), (12.0, 0.121), (24.0, 0.104),
        (48.0, 0.073), (96.0, 0.058), (192.0, 0.052), (384.0, 0.050), (768.0, 0.049),
        (1536.0, 0.048), (3072.0, 0.048), (6144.0, 0.043), (12288.0, 0.031), (24576.0, 0.023),
        (49152.0, 0.019))
"""Uses of a row in a batch of `TRACE_SAMPLES`, and the share of lookups that go to such rows.

facebookresearch/dlrm_datasets (MIT licence), trace of 2021, 856 tables: each class of uses is
represented by its middle.
"""

TRACE_SAMPLES = 65_536
"""Samples of the batch that `USES` counts."""

LARGE_COLUMN = 1000
"""Columns with more rows than this are large."""

VALUE, OWN, NOISE, FURTHER = 5, 6, 7, 13
"""Draws of a rule."""


@dataclass(frozen=True)
class GeneratorProfile:
    """Parameters of the generator, explained in the module's docstring.

    ``large`` and ``small`` are the popularities of values in large and small columns,
    ``noise_large`` and ``noise_small`` their noise.
    """

    name: str
    large: Popularity
    small: Popularity
    missing: float
    noise_large: float
    noise_small: float
    entities: Popularity
    cluster_share: float
    clusters: Popularity
    preferred: Popularity
    click_rate: float


CRITEO = GeneratorProfile(
    "criteo", large=Popularity(0.8039, 217.93), small=Popularity(0.2, 3.6518), missing=0.2954,
    noise_large=0.0711, noise_small=0.1611, entities=Popularity(1.3191, 2355.6),
    cluster_share=0.56, clusters=Popularity(1.813, 0.2301), preferred=Popularity(4.4459, 38.0),
    click_rate=0.256)
AVAZU = GeneratorProfile(
    "avazu", large=Popularity(0.5, 246.17), small=Popularity(0.6507, 0.1036), missing=0.0,
    noise_large=0.1293, noise_small=0.13, entities=Popularity(1.6575, 0.4664), cluster_share=0.0,
    clusters=Popularity(1.0, 1.0), preferred=Popularity(1.0, 1.0), click_rate=0.17)


def profile_for(model: Model) -> GeneratorProfile:
    """Return the profile for a model: ``AVAZU`` for Avazu's tables, else ``CRITEO``."""
    return AVAZU if model.name == "avazu" else CRITEO


@dataclass(frozen=True, eq=False)
class Column:
    """A table of a chunk of samples.

    table: number of the table. size: rows of the table. keys: mean keys of a bag.
    index: number of each sample, or of its request in a table of requests, int64 ``[samples]``.
    entity: entity of each sample, int64 ``[samples]``.
    seed, profile: of all draws.
    """

    table: int
    size: int
    keys: float
    index: np.ndarray
    entity: np.ndarray
    seed: int
    profile: GeneratorProfile

    def click(self, nth: int) -> np.ndarray:
        """Return key ``nth`` of each bag, drawn for the entity of the sample."""
        # The first key is the same as in a model without bags.
        what = (self.table, nth) if nth else (self.table,)
        return self._row(np.where(draw(self.seed, (NOISE, *what), self.index) < self._noise,
                                  draw(self.seed, (OWN, *what), self.index),
                                  draw(self.seed, (VALUE, *what), self.entity)))

    def drawn(self, further: np.ndarray) -> np.ndarray:
        """Return the keys ``further`` of each bag, drawn alone from the popularity of the table."""
        return self._row(draw(self.seed, (FURTHER, self.table), self.index, further))

    def following(self, further: np.ndarray, first: np.ndarray) -> np.ndarray:
        """Return the keys ``further`` of each bag as functions of the ``first``, uniform over the
        table."""
        found = hashes(self.seed, (FURTHER, self.table), first, further) % np.uint64(self.size)
        return found.astype(np.int64)

    def by_uses(self, numbers: np.ndarray) -> np.ndarray:
        """Return the keys ``numbers`` of each bag, with the frequencies of `USES`."""
        ends, firsts, counts = _classes(self.size, self.keys)
        u = draw(self.seed, (FURTHER, self.table), self.index, numbers)
        kind = np.minimum(np.searchsorted(ends, u, side="right"), len(ends) - 1)
        within = draw(self.seed, (OWN, self.table), self.index, numbers)
        rank = firsts[kind] + (within * counts[kind]).astype(np.int64)
        return scramble(rank, self.table, self.size, self.seed)

    @property
    def _large(self) -> bool:
        return self.size > LARGE_COLUMN

    @property
    def _noise(self) -> float:
        return self.profile.noise_large if self._large else self.profile.noise_small

    def _row(self, u: np.ndarray) -> np.ndarray:
        """Return the row of each uniform number, by the popularity of the table."""
        values, missing = ((self.profile.large, self.profile.missing) if self._large
                           else (self.profile.small, 0.0))
        rank = values.ranks(np.maximum(0, (u - missing) / (1 - missing)), self.size)
        return scramble(np.where(u < missing, 0, rank), self.table, self.size, self.seed)


Rule = Callable[[Column, int], np.ndarray]
"""Return the first keys of each bag of a column, as many as its longest bag: int64 ``[samples,
keys]``."""


def _clicks(column: Column, most: int) -> np.ndarray:
    return np.stack([column.click(nth) for nth in range(most)], axis=1)


def _first_key(column: Column, most: int) -> np.ndarray:
    first = column.click(0)
    return np.column_stack((first, column.following(np.arange(1, most), first)))


def _drawn(column: Column, most: int) -> np.ndarray:
    return np.column_stack((column.click(0), column.drawn(np.arange(1, most))))


RULES: dict[str, Rule] = {
    "clicks": _clicks, "first_key": _first_key, "drawn": _drawn,
    "histogram": lambda column, most: column.by_uses(np.arange(most))}
"""Rules by name."""


@lru_cache(maxsize=1024)
def _classes(size: int, keys: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the classes of `USES` in a table of ``size`` rows whose bags have ``keys`` keys.

    Returns the share of lookups up to each class, the first rank of each class, and its rows. Rows
    that are used once are the rest of the table, at least half of it: in a table that is too small
    for the trace, the other classes have fewer rows, which are used more often.
    """
    uses, shares = (np.array(each) for each in zip(*USES[::-1]))
    rows = np.maximum(1, shares * TRACE_SAMPLES * keys / uses)
    used = rows[:-1].sum()
    rows[:-1] = np.maximum(1, rows[:-1] * min(1.0, size / 2 / used)).astype(np.int64)
    firsts = np.minimum(np.concatenate(([0], np.cumsum(rows[:-1]))).astype(np.int64), size - 1)
    rows[-1] = size
    return (np.cumsum(shares) / shares.sum(), firsts,
            np.minimum(rows.astype(np.int64), size - firsts))
