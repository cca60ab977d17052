"""Generator of samples like those of click logs: skewed, similar, learnable, reproducible by seed.

Generation of a sample
----------------------
A sample shows an entity (for example a user with an item). With probability ``cluster_share`` the
entity is a preferred entity of the sample's cluster, otherwise any entity. An entity has a value in
each column. With probability ``noise`` a column is drawn independently instead, so that samples of
an entity are similar but not equal. Clusters, entities and values have Zipf-Mandelbrot popularity,
``P(rank x) ~ (x + shift)^-exponent``. A fraction ``missing`` of the values of every large column is
a fixed value. Columns of up to 1,000 rows and larger columns have separate parameters. Every draw
is a hash of (seed, kind of draw, subject). Sample i therefore does not depend on earlier samples,
and memory is limited to a chunk. If the model has bags, their lengths are uniform, and an entity
has as many values in a column as the bag has keys. Weights of keys are uniform between 0 and 2.

The parameters are fitted to real samples of Criteo Kaggle and Avazu: every share of key uses is
within 7 % of the measured share, and the savings of greedy selection are within 4 points. Labels
follow a hidden logistic model of keys and dense features.
"""

from collections.abc import Iterator

import numpy as np

from host.data.draws import draw, request_of
from host.data.rules import RULES, Column, GeneratorProfile, profile_for
from host.model import Model
from host.samples import Samples

__all__ = ["generate"]

_CHUNK = 4096
_MOST_KEYS = 1 << 22
"""Keys of a chunk at most, so that memory stays below a few hundred megabytes."""
_ENTITIES = 1e9

_CLUSTER, _ENTITY, _PREFERRED, _FROM_CLUSTER, _USES_CLUSTER = range(5)
_DENSE, _WEIGHT, _LABEL, _LENGTH, _KEY_WEIGHT = 8, 9, 10, 12, 16
"""Draws of the generator; :mod:`host.data.rules` and :mod:`host.data.draws` have the others."""


def generate(model: Model, count: int, seed: int = 0, profile: GeneratorProfile | None = None,
             chunk: int = _CHUNK) -> Iterator[Samples]:
    """Yield chunks of ``count`` samples for the tables, bags and dense features of ``model``.

    The samples depend only on the model's rows, bags and dense features, on ``seed`` and on
    ``profile`` (default: `profile_for` the model).

    Raises
    ------
    ValueError
        ``count`` or ``chunk`` is below 1.
    """
    for name, value in (("count", count), ("chunk", chunk)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, not {value!r}")
    profile = profile or profile_for(model)
    keys = sum(most for _, most in model.bags) or model.tables
    chunk = max(1, min(chunk, _MOST_KEYS // keys))
    for first in range(0, count, chunk):
        yield _chunk(model, np.arange(first, min(count, first + chunk)), seed, profile)


def _chunk(model: Model, index: np.ndarray, seed: int, profile: GeneratorProfile) -> Samples:
    logit = np.zeros(len(index))
    request = request_of(index, model.requests, seed)
    entities = _entities(index, seed, profile)
    of_request = entities if request is index else _entities(request, seed, profile)
    bags = model.bags or ((1, 1),) * model.tables
    rule = RULES[model.rule]
    # Every key that a sample could have, and whether it does, table by table.
    rows = np.empty((len(index), sum(most for _, most in bags)), np.int64)
    there = np.empty(rows.shape, bool)
    weights = np.ones(rows.shape, np.float32) if model.weighted_tables else None
    lengths = np.empty((len(index), model.tables), np.int32)
    place = 0
    for table, (size, (fewest, most)) in enumerate(zip(model.rows, bags)):
        shared = table in model.request_tables
        column = Column(table, size, (fewest + most) / 2, request if shared else index,
                        of_request if shared else entities, seed, profile)
        if fewest < most:
            choices = most - fewest + 1
            lengths[:, table] = fewest + (
                choices * draw(seed, (_LENGTH, table), column.index)).astype(np.int32)
        else:
            lengths[:, table] = most
        if not most:
            continue
        here = slice(place, place + most)
        place += most
        rows[:, here] = found = rule(column, most)
        there[:, here] = np.arange(most) < lengths[:, table, None]
        if weights is not None and table in model.weighted_tables:
            weights[:, here] = 2 * draw(seed, (_KEY_WEIGHT, table), column.index, np.arange(most))
        logit += (lengths[:, table] > 0) * (draw(seed, (_WEIGHT, table), found[:, 0]) - 0.5)
    # The sum of 26 weights of standard deviation 0.29 has a standard deviation of about 1.5.
    logit *= 5.0 / np.sqrt(model.tables)

    dense = np.empty((len(index), model.dense), np.float32)
    for feature in range(model.dense):
        dense[:, feature] = _feature(index, feature, seed)
        logit += (draw(seed, (_WEIGHT, model.tables, feature), np.zeros(1, int)) - 0.5) * (
            dense[:, feature] - 2.0) / np.sqrt(model.dense)
    logit += np.log(profile.click_rate / (1 - profile.click_rate))
    label = draw(seed, (_LABEL,), index) * (1 + np.exp(-logit)) < 1
    if not model.bags and weights is None:
        return Samples.one_hot(dense, label, rows)
    tables = np.repeat(np.arange(model.tables, dtype=np.int32), [most for _, most in bags])
    return Samples(dense, label.astype(np.float32), lengths,
                   np.broadcast_to(tables, rows.shape)[there], rows[there],
                   None if weights is None else weights[there])


def _entities(index: np.ndarray, seed: int, profile: GeneratorProfile) -> np.ndarray:
    """Return the entity of each sample."""
    cluster = profile.clusters.ranks(draw(seed, (_CLUSTER,), index), _ENTITIES)
    own = profile.entities.ranks(draw(seed, (_ENTITY,), index), _ENTITIES)
    nth = profile.preferred.ranks(draw(seed, (_PREFERRED,), index), _ENTITIES)
    of_cluster = profile.entities.ranks(
        draw(seed, (_FROM_CLUSTER,), (cluster << 30) + nth), _ENTITIES)
    use = draw(seed, (_USES_CLUSTER,), index) < profile.cluster_share
    return np.where(use, of_cluster, own)


def _feature(index: np.ndarray, feature: int, seed: int) -> np.ndarray:
    """Return a dense feature: log(1 + x) of a heavy-tailed count x, 0 in some samples."""
    scale = 1.0 + 2.0 * float(draw(seed, (_DENSE, feature, 1), np.zeros(1, int))[0])
    u = draw(seed, (_DENSE, feature), index)
    # A sixth of the values is missing; for the others, log(1 + x) is exponential.
    heavy = np.abs(np.log(np.minimum(1.0, u * 1.2))) * scale
    return np.log1p(np.floor(np.expm1(np.minimum(heavy, 20.0)))).astype(np.float32)
