"""Times of each system for a program's mini-batches."""

from itertools import pairwise

import pytest

from tests.optional import absent

pytest.importorskip("torch", reason=absent("torch"))

from host.model import MODELS, Model
from sim.compare.options import CompareOptions
from sim.compare.request import request_of as comparison_of
from sim.evaluation.systems import canonical
from sim.experiments.request import setting_of
from sim.serving.options import ServeOptions
from sim.serving.request import request_of as serving_of
from sim.torch.lookups.dense import Chains, with_mlps
from sim.torch.options import TorchOptions
from sim.torch.report.page import verdict
from sim.torch.systems import SYSTEMS, Setting, times_of
from tests.sim.torch.programs import ROWS, Concatenated, Dlrm, attached_to, mini_batches, trained


def times(session, training: bool = False, **setting) -> dict:
    return times_of(session.record.alike(training), session.chains, training,
                    Setting(nodes=2, **setting))


@pytest.mark.parametrize("train", [False, True])
def test_every_system_has_a_row(train):
    session, _ = attached_to(lambda: trained(Dlrm(), mini_batches(6), train))
    found = times(session, train)
    assert (found["mini_batches"], found["warmup"], found["samples"]) == (3, 3, 12)
    assert found["notes"] == [] and found["why"] is None
    assert [row["system"] for row in found["rows"]] == list(SYSTEMS)
    for row in found["rows"]:
        assert 0 < row["interval_us"] <= row["service_us"] * 1.001
        assert sum(row["phases_us"].values()) == pytest.approx(row["service_us"])
        assert (row["hit_rate"] is None) == row["system"].startswith("bl-")
    assert found == times(session, train)


@pytest.mark.parametrize(("own", "said", "loses"), [
    (80.0, "FS takes 80 us per mini-batch, bl-paper 100 us: 1.25 times as fast.", False),
    (200.0, "FS takes 200 us per mini-batch, bl-paper 100 us: 0.50 times as fast.", True)])
def test_what_times_come_to(own, said, loses):
    rows = [{"system": name, "interval_us": us} for name, us in (
        ("EN", 1.0), ("FS", own), ("bl-tuned", 300.0), ("bl-paper", 100.0))]
    found = verdict(rows, "FS")
    assert (found["text"], found["loses"], found["best"]) == (said, loses, "bl-paper")
    assert verdict(rows, "bl-paper")["text"] == "bl-paper takes 100 us per mini-batch."


def test_mini_batches_of_another_shape_are_left_out():
    def program():
        trained(Dlrm(), [*mini_batches(4), *mini_batches(1, samples=5)], False)

    session, _ = attached_to(program)
    assert len(session.record.steps) == 5
    assert times(session)["mini_batches"] == 2 and times(session)["samples"] == 12


@pytest.mark.parametrize(("count", "again"), [(2, 4), (3, 4), (8, 0)])
def test_data_that_comes_again_is_told_of(count, again):
    session, _ = attached_to(lambda: trained(
        Dlrm(), (mini_batches(count) * 4)[:8], False))
    notes = [note for note in times(session)["notes"] if "key by key" in note]
    assert [note.split(" mini-batches")[0] for note in notes] == (
        [f"{again} of 4 measured"] if again else [])


def test_one_mini_batch_tells_no_time():
    session, _ = attached_to(lambda: trained(Dlrm(), mini_batches(1), False))
    found = times(session)
    assert found["rows"] == [] and "2 mini-batches of the same shape, not 1" in found["why"]


@pytest.mark.parametrize(("rows", "dimension"), [((9,) * 30, 16), (ROWS, 64), (ROWS, 80),
                                                 ((9,) * 70, 4)])
def test_programs_beyond_the_sizes_of_a_preset(rows, dimension):
    session, _ = attached_to(lambda: trained(
        Dlrm(rows, dimension), mini_batches(4, rows=rows), False))
    assert len(times(session)["rows"]) == len(SYSTEMS)


def test_baselines_of_a_program_have_no_padding():
    def of(*dimensions: int) -> dict:
        session, _ = attached_to(lambda: trained(
            Concatenated(dimensions), mini_batches(4, samples=1000, keys=4), False))
        return times(session)

    found, wide = of(16, 10, 48), of(48, 48, 48)
    assert found["model"] == (
        "3 tables of dimension 10 to 48, a bottom MLP 5-8-20, a concatenation, a top MLP 94-8-1")
    assert found["why"] is None and not found["notes"]
    mine, most = ({row["system"]: row for row in each["rows"]} for each in (found, wide))
    for resource in ("link", "pcie_in", "gpu_memory"):
        assert mine["bl-paper"]["busy_us"][resource] < 0.8 * most["bl-paper"]["busy_us"][resource]
    for name in ("bl-tuned", "bl-paper", "EN", "FS"):
        notes = mine[name]["notes"]
        assert name.startswith("bl-") != (
            any(note.startswith("NICs pad vectors of 10 to 48 values with zeros to 48")
                for note in notes))
        assert name.startswith("bl-") != any(
            "the GPUs compute the interaction: a NIC supports one" in note for note in notes)


def chains(*seen: tuple[int, ...]) -> Chains:
    found = Chains()
    for widths in seen:
        for inputs, outputs in pairwise(widths):
            found.add(7, inputs, outputs)
        found.end()
    return found


@pytest.mark.parametrize(("top", "kind", "itself"), [
    (16 + 6, "dot", False), (16 + 10, "dot", True), (4 * 16, "cat", False)])
def test_mlps_are_recognised_by_their_shapes(top, kind, itself):
    shape = Model(ROWS, 16, 1, (16,), (1,))
    found, notes = with_mlps(shape, chains((13, 32, 16), (top, 8, 1)), MODELS["kaggle"])
    assert notes == [] and (found.dense, found.bottom, found.top) == (13, (32, 16), (8, 1))
    assert (found.interaction, found.interaction_itself) == (kind, itself)


def test_a_concatenation_of_different_dimensions():
    """The bottom MLP may end in another width than the tables."""
    shape = Model(ROWS, 48, 1, (48,), (1,), interaction="cat", dimensions=(16, 10, 48))
    found, notes = with_mlps(shape, chains((13, 32, 20), (16 + 10 + 48 + 20, 8, 1)),
                             MODELS["kaggle"])
    assert notes == [] and found.interaction == "cat" and found.dimensions == (16, 10, 48)
    assert (found.dense, found.bottom, found.top) == (13, (32, 20), (8, 1))
    assert found.interaction_width == 16 + 10 + 48 + 20
    found, notes = with_mlps(shape, chains((13, 48), (99, 1)), MODELS["kaggle"])
    assert len(notes) == 1 and notes[0].endswith("times assume a concatenation")


def test_mlps_that_are_not_there():
    kaggle, shape = MODELS["kaggle"], Model(ROWS, 16, 1, (16,), (1,))
    found, notes = with_mlps(shape, chains((5, 7)), kaggle)
    assert (found.dense, found.bottom, found.top) == (kaggle.dense, kaggle.bottom, kaggle.top)
    assert len(notes) == 2
    found, notes = with_mlps(shape, chains((13, 16), (99, 1)), kaggle)
    assert len(notes) == 1 and "99 values" in notes[0]


@pytest.mark.parametrize("name", ["en", "EN", "En"])
def test_systems_have_the_same_names_in_every_command(name):
    """The label in a report is the same for each spelling."""
    assert canonical(name) == ("en", False)
    assert TorchOptions(system=name).system == "EN"
    found, _ = comparison_of(CompareOptions(system=(name, "BL-Tuned")))
    assert found.systems == ("en", "bl-tuned")
    served = vars(ServeOptions(system=(name,)))
    _, systems, *_ = serving_of(setting_of(None, None, None), **{name: served[name] for name in (
        "model", "qps", "slo", "system", "nodes", "burst_length")})
    assert systems == ["en"]
