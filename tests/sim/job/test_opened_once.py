"""Each command opens a file of samples once, however many passes it takes over the samples."""

import sys
from contextlib import contextmanager
from dataclasses import astuple, replace

import numpy as np
import pytest

from host.data.datasets import open_samples
from host.data.readers import lines
from host.errors import InputError
from host.model import MODELS
from host.reading import open_input
from host.samples import concatenate
from sim import api
from sim.evaluation.fields import Workload
from sim.evaluation.trace import trace_of
from sim.training.train import train
from tests.sim.inputs import criteo, movielens
from tests.sim.training.compiled_nics import options

_RUN = {"config": "kaggle", "nodes": 2, "mini_batch": 16, "placement": "lookups"}


class _Opened:
    """Paths that this process opens while ``active``; an audit hook cannot be removed."""

    def __init__(self):
        self.active, self.paths = False, []
        sys.addaudithook(self._take)

    def _take(self, event: str, arguments: tuple) -> None:
        # Without a mode, `os.open` reports an open that `open` has reported.
        if self.active and event == "open" and arguments[1] is not None:
            self.paths.append(str(arguments[0]))


_OPENED = _Opened()


@contextmanager
def opened(path: str, times: int = 1):
    """Check how often ``path`` is opened meanwhile."""
    _OPENED.paths.clear()
    _OPENED.active = True
    try:
        yield
    finally:
        _OPENED.active = False
    assert _OPENED.paths.count(path) == times


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return str(criteo(tmp_path_factory.mktemp("files") / "train.txt", 64))


@pytest.mark.parametrize("command", [
    lambda given: api.run(**_RUN, fidelity="fast", **given),
    lambda given: api.train(**_RUN, reference=True, epochs=3, **given),
    lambda given: api.hitrate(sizes=[64], placement="lookups", mini_batch=16, **given),
    lambda given: api.plan(cluster="paper", placement="lookups", mini_batch=16, **given),
    lambda given: api.describe(given["data"], format="criteo")])
def test_a_command_opens_its_file_once(path, command):
    with opened(path):
        command({"data": path, "format": "criteo"})


def test_traces_of_points_share_a_file(monkeypatch, path):
    """The file is parsed once, beside passes for checksums."""
    parsed = []
    monkeypatch.setattr(lines, "open_input", lambda each: parsed.append(each) or open_input(each))
    of = Workload(dataset="kaggle", data=(path,), format="criteo", mini_batch=8, warmup=2,
                  measured=2)
    short, long = trace_of(of), trace_of(replace(of, measured=5))
    assert len(parsed) == 1
    alone, = open_samples(path, "criteo", MODELS["kaggle"])
    for trace, count in ((short, 32), (long, 56)):
        found = concatenate(batch.samples for batch in trace.batches)
        assert all(np.array_equal(*pair) for pair in zip(
            astuple(found), astuple(alone.slice(0, count)), strict=True))


def test_a_bad_line_is_an_error_of_each_trace(path, tmp_path):
    bad = tmp_path / "bad.txt"
    with open(path) as file:
        bad.write_text(file.read() + "1\tx\n")
    of = Workload(dataset="kaggle", data=(str(bad),), format="criteo", mini_batch=32, warmup=1,
                  measured=2)
    for measured in (2, 3, 2):
        with pytest.raises(InputError, match=r"bad.txt:65:\d+: 2 columns instead of 40"):
            trace_of(replace(of, measured=measured))


@pytest.mark.thorough
@pytest.mark.parametrize("epochs", [1, 2])
def test_training_in_rtl_reads_its_file_once(tmp_path, epochs):
    path = str(movielens(tmp_path / "ratings.csv", 32))
    with opened(path, 2):  # the reader of MovieLens first finds the range of the timestamps
        result = train(options("movielens", mini_batch=16, samples=32, placement="lookups",
                               epochs=epochs, data=path, format="movielens"))
    assert result["steps"] == 2 * epochs and result["bit_identical"]


def test_several_epochs_have_the_values_of_separate_passes(path, tmp_path):
    """Checkpoints split a training of two epochs, whose second then reads the file itself."""
    given = {"config": "kaggle", "mini_batch": 16, "reference": True, "data": path,
             "format": "criteo"}
    whole = api.train(**given, epochs=2)
    api.train(**given, epochs=1, checkpoint=str(tmp_path / "c.npz"))
    rest = api.train(**given, epochs=2, checkpoint=str(tmp_path / "c.npz"))
    assert len(whole["loss"]) == 8 and rest["loss"] == whole["loss"][4:]
    assert rest["weights_sha256"] == whole["weights_sha256"]


@pytest.mark.parametrize("placement, epochs", [("even", 2), ("lookups", 1)])
def test_a_bad_line_is_one_error(path, tmp_path, placement, epochs):
    bad = tmp_path / "bad.txt"
    with open(path) as file:
        bad.write_text(file.read() + "1\tx\n")
    with pytest.raises(ValueError, match=r"bad.txt:65:\d+: 2 columns instead of 40"):
        api.train(config="kaggle", mini_batch=16, placement=placement, epochs=epochs,
                  reference=True, data=str(bad), format="criteo")
