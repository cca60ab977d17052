"""Samples like those of click logs: skewed, alike, learnable; any number, from a seed.

How a sample comes about
------------------------
Columns are dealt to a few groups (what a user, an item, a page brings along). Each sample draws an
entity for each group: with probability ``cluster_share`` one of the few that the sample's cluster
prefers, else any. An entity has a fixed value in each column of its group; with probability
``noise`` a column is drawn by itself instead. Clusters, entities and values have Zipf-Mandelbrot
popularity, ``P(rank x) ~ (x + shift)^-exponent``; a share ``missing`` of the values of every large
column is one and the same. Every draw is a hash of (seed, what is drawn, for what), so that sample
i is the same whatever was generated before, and memory stays at one chunk.

The parameters are fitted, nothing more: see :mod:`host.fidelity` for what they reproduce and how
well. Labels follow a hidden logistic model of keys and dense features.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .hashing import GOLDEN, mix64, mix64_int, uniforms
from .model import Model
from .samples import Samples

__all__ = ["AVAZU", "CRITEO", "GeneratorProfile", "generate", "profile_for"]

_CHUNK = 4096
_LARGE_COLUMN = 1000
"""Columns of more rows than this have missing values."""
_ENTITIES = 1e9

_CLUSTER, _ENTITY, _PREFERRED, _FROM_CLUSTER, _USES_CLUSTER, _VALUE, _OWN, _NOISE, _DENSE, \
    _WEIGHT, _LABEL, _ROWS = range(12)


@dataclass(frozen=True)
class Popularity:
    """Zipf-Mandelbrot: rank x from 0 on has a probability of about (x + shift)^-exponent."""

    exponent: float
    shift: float

    def ranks(self, u: np.ndarray, count: float) -> np.ndarray:
        """Return the ranks below ``count`` of uniforms ``u``, by the inverse distribution."""
        # The exponent 1, where the power law turns into a logarithm, is approached, not met.
        power = 1.0 - self.exponent - 1e-9
        low, high = self.shift ** power, (self.shift + count) ** power
        x = (low + u * (high - low)) ** (1.0 / power) - self.shift
        return np.clip(x, 0, count - 1).astype(np.int64)


@dataclass(frozen=True)
class GeneratorProfile:
    """Parameters of the generator; see the module for what they mean."""

    name: str
    groups: int
    values: Popularity
    missing: float
    entities: Popularity
    noise: float
    cluster_share: float
    clusters: Popularity
    preferred: Popularity
    click_rate: float


CRITEO = GeneratorProfile(
    "criteo", groups=1, values=Popularity(0.605, 200.0), missing=0.322,
    entities=Popularity(0.6, 2000.0), noise=0.0, cluster_share=0.5623,
    clusters=Popularity(1.5103, 0.10907), preferred=Popularity(3.8237, 38.215), click_rate=0.256)
AVAZU = GeneratorProfile(
    "avazu", groups=1, values=Popularity(0.6, 32.84), missing=0.0,
    entities=Popularity(1.6554, 0.36407), noise=0.1292, cluster_share=0.2253,
    clusters=Popularity(0.6, 3.8217), preferred=Popularity(3.9899, 0.3308), click_rate=0.17)


def profile_for(model: Model) -> GeneratorProfile:
    """Return the profile that fits a model: ``AVAZU`` for its tables, else ``CRITEO``."""
    return AVAZU if model.name == "avazu" else CRITEO


def generate(model: Model, count: int, seed: int = 0, profile: GeneratorProfile | None = None,
             chunk: int = _CHUNK) -> Iterator[Samples]:
    """Yield ``count`` samples for the tables and dense features of ``model``, one key a table.

    The samples depend on the model's rows and dense features, on ``seed`` and on ``profile``
    (default: `profile_for` the model) only.

    Raises
    ------
    ValueError
        ``count`` or ``chunk`` is below 1.
    """
    for name, value in (("count", count), ("chunk", chunk)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, not {value!r}")
    profile = profile or profile_for(model)
    for first in range(0, count, chunk):
        yield _chunk(model, np.arange(first, min(count, first + chunk)), seed, profile)


def _hashes(seed: int, what: tuple[int, ...], index: np.ndarray) -> np.ndarray:
    """One hash for each index of what is drawn."""
    base = mix64_int(seed, 0x67656E, *what)
    return mix64(mix64(index.astype(np.uint64) * np.uint64(GOLDEN) + np.uint64(base))
                 ^ np.uint64(base))


def _draw(seed: int, what: tuple[int, ...], index: np.ndarray) -> np.ndarray:
    return uniforms(_hashes(seed, what, index))


def _chunk(model: Model, index: np.ndarray, seed: int, profile: GeneratorProfile) -> Samples:
    cluster = profile.clusters.ranks(_draw(seed, (_CLUSTER,), index), _ENTITIES)
    rows = np.empty((len(index), model.tables), np.int64)
    logit = np.zeros(len(index))
    entities = [_entities(index, cluster, group, seed, profile)
                for group in range(min(profile.groups, model.tables))]
    for table, size in enumerate(model.rows):
        entity = entities[(7 * table + 3) % len(entities)]
        u = np.where(_draw(seed, (_NOISE, table), index) < profile.noise,
                     _draw(seed, (_OWN, table), index), _draw(seed, (_VALUE, table), entity))
        missing = profile.missing if size > _LARGE_COLUMN else 0.0
        rank = profile.values.ranks(np.maximum(0, (u - missing) / (1 - missing)), size)
        rows[:, table] = _scramble(np.where(u < missing, 0, rank), table, size, seed)
        logit += _draw(seed, (_WEIGHT, table), rows[:, table]) - 0.5
    # Twenty-six weights of deviation 0.29 each: together of deviation about 1.5.
    logit *= 5.0 / np.sqrt(model.tables)

    dense = np.empty((len(index), model.dense), np.float32)
    for feature in range(model.dense):
        dense[:, feature] = _feature(index, feature, seed)
        logit += (_draw(seed, (_WEIGHT, model.tables, feature), np.zeros(1, int)) - 0.5) * (
            dense[:, feature] - 2.0) / np.sqrt(model.dense)
    logit += np.log(profile.click_rate / (1 - profile.click_rate))
    label = _draw(seed, (_LABEL,), index) * (1 + np.exp(-logit)) < 1
    return Samples.one_hot(dense, label, rows)


def _entities(index: np.ndarray, cluster: np.ndarray, group: int, seed: int,
              profile: GeneratorProfile) -> np.ndarray:
    """The entity of one group for each sample."""
    own = profile.entities.ranks(_draw(seed, (_ENTITY, group), index), _ENTITIES)
    nth = profile.preferred.ranks(_draw(seed, (_PREFERRED, group), index), _ENTITIES)
    of_cluster = profile.entities.ranks(
        _draw(seed, (_FROM_CLUSTER, group), (cluster << 30) + nth), _ENTITIES)
    use = _draw(seed, (_USES_CLUSTER, group), index) < profile.cluster_share
    return np.where(use, of_cluster, own)


def _scramble(rank: np.ndarray, table: int, size: int, seed: int) -> np.ndarray:
    """Spread ranks over the rows of a table, one to one."""
    factor = mix64_int(seed, _ROWS, table) % min(size, 1 << 26) | 1
    while np.gcd(factor, size) != 1:
        factor += 2
    return (rank * factor + mix64_int(seed, _ROWS, table, 1) % size) % size


def _feature(index: np.ndarray, feature: int, seed: int) -> np.ndarray:
    """A dense feature: log(1 + x) of a count x with a heavy tail, 0 in some samples."""
    scale = 1.0 + 2.0 * float(_draw(seed, (_DENSE, feature, 1), np.zeros(1, int))[0])
    u = _draw(seed, (_DENSE, feature), index)
    # A sixth is missing; of the others, log(1 + x) is exponential.
    heavy = np.abs(np.log(np.minimum(1.0, u * 1.2))) * scale
    return np.log1p(np.floor(np.expm1(np.minimum(heavy, 20.0)))).astype(np.float32)
