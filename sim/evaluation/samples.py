"""The samples of a data set in a setting, for what describes data sets without measuring points."""

from functools import cache

from host.data.contents import check_contents, contents
from host.data.datasets import open_samples
from host.data.generator import generate
from host.model import MODELS
from host.samples import Samples, concatenate
from sim.evaluation.setting import Setting, Source

__all__ = ["samples_of"]


def samples_of(setting: Setting, dataset: str, count: int) -> Samples:
    """Return the first ``count`` samples of a data set, fewer where its files have fewer."""
    source = setting.source(dataset)
    return _samples(dataset, source, setting.seed, count, contents(source.data))


@cache
def _samples(dataset: str, source: Source, seed: int, count: int, read: tuple[str, ...]) -> Samples:
    model = MODELS[dataset]
    if source.data:
        chunks = list(open_samples(source.data, str(source.format), model, count))
    else:
        chunks = list(generate(model, count, seed))
    check_contents(source.data, read)
    return concatenate(chunks)
