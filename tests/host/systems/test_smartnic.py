"""Systems with SmartNICs: steps worked by hand, and what each part changes."""

from dataclasses import replace

import pytest

from host.systems import NicTimes, StepOptions, all_on_nic, breakdown, schedule, smartnic
from host.systems.all_on_nic import FpgaDense, not_applicable
from host.systems.charge import longest_us
from host.systems.nic_gradients import gradient_us
from tests.host.systems.simple import MODEL, TUNED, devices, workload

INFERENCE, TRAINING = StepOptions(), StepOptions(training=True)
NIC = NicTimes({"input_all_to_all": 20.0, "embedding_lookup": 50.0, "embedding_all_to_all": 10.0,
                "overhead": 5.0, "irregular": 7.0}, interval_us=30.0)


def step(nic=NIC, software=None, options=INFERENCE, **parts):
    d = devices(software=software) if software else devices()
    return smartnic(workload(), d, options, nic, **parts)


def names(found) -> set[str]:
    return {stage.name for stage in found.stages}


def test_the_nic_is_waited_for():
    # Queries copied 5; the NIC 92, meanwhile dense features 5 and the bottom MLP 23 on the GPU;
    # synchronize 3; interaction and top MLP, 6 operators; predictions 8.
    assert longest_us(step()) == pytest.approx(5 + 92 + 3 + 60 + 1 + 2 + 8, abs=1e-3)


def test_with_computation_the_nic_interacts_behind_the_bottom_mlp():
    quick = replace(NIC, phases={"embedding_lookup": 1.0, "irregular": 7.0})
    found = step(quick, computation=True)
    # Two copies, the bottom MLP, the NIC's interaction, waiting, the top MLP.
    assert longest_us(found) == pytest.approx(5 + 5 + 23 + 7 + 3 + 23 + 8, abs=1e-3)
    assert "interaction" not in names(found) and "interaction" in names(step(quick))


def test_nothing_on_gives_the_nic_alone():
    alone = step(NIC)
    assert [(s.name, s.us) for s in step(NIC, computation=False, local_cache=False).stages] == [
        (s.name, s.us) for s in alone.stages]
    # A local cache changes what the NICs take, nothing else, in inference.
    assert step(NIC, local_cache=True).stages == alone.stages


def interval(found) -> float:
    """Return the mean time from one of many steps in flight to the next."""
    ends = schedule([found] * 40, 4).finished
    return (ends[-1] - ends[7]) / 32


def test_the_nic_is_held_for_its_interval_only():
    busy = schedule([step()]).busy
    assert busy["nic"] == 30.0
    # The host's thread, 6 + 3 + 2 operators and copies, is what takes longest.
    assert interval(step()) == pytest.approx(busy["cpu"], rel=0.02)
    slow = replace(NIC, interval_us=80.0)
    assert interval(step(slow, TUNED)) == pytest.approx(80, rel=0.02)
    assert longest_us(step(slow)) == longest_us(step())


def test_gathers_are_calls_of_the_host():
    called = step(replace(NIC, launches=4.0))
    assert schedule([called]).busy["cpu"] == schedule([step()]).busy["cpu"] + 4 * 10
    graph = step(replace(NIC, launches=4.0), software=TUNED)
    assert schedule([graph]).busy["cpu"] == schedule([step(software=TUNED)]).busy["cpu"] + 4 * 6


@pytest.mark.parametrize("options", [INFERENCE, TRAINING])
@pytest.mark.parametrize("computation", [False, True])
@pytest.mark.parametrize("cache", [False, True])
def test_breakdowns_add_up(options, computation, cache):
    found = step(replace(NIC, update_us=40.0, launches=2.0), options=options,
                 computation=computation, local_cache=cache)
    times = schedule([found])
    assert sum(breakdown(found, times, 0).phases.values()) == pytest.approx(times.finished[0])


def test_training_updates_rows_on_the_nic_or_on_gpus():
    nic = replace(NIC, update_us=40.0)
    on_nic = step(nic, options=TRAINING, computation=True)
    on_gpu = step(nic, options=TRAINING)
    assert "rows" in names(on_nic) and "row update" not in names(on_nic)
    assert "row update" in names(on_gpu) and "rows" not in names(on_gpu)
    assert "rows to the cache" in names(step(nic, options=TRAINING, local_cache=True))
    assert [s.us for s in on_nic.stages if s.name == "rows" and "nic" in s.resources] and sum(
        s.us for s in on_nic.stages if s.name == "rows") == 40.0
    without = step(nic, options=StepOptions(True, False), computation=True)
    assert "all-reduce" in names(on_nic) and "all-reduce" not in names(without)


def test_the_gradient_path_takes_its_latencies_and_beats():
    # Links of no size: two crossings of PCIe and one of the network, and a beat a cycle of 4 ns:
    # two lookups of a node, two sums sent by one, two rows of an owner.
    assert gradient_us(workload(), devices()) == pytest.approx(2 * 0.5 + 1.0 + 3 * 2 * 0.004,
                                                               abs=1e-4)
    wide = replace(MODEL, dimension=64, bottom=(64,))
    assert gradient_us(workload(model=wide), devices()) == pytest.approx(
        2.0 + 3 * 4 * 2 * 0.004, abs=1e-4)


def test_everything_on_the_nic_by_hand():
    fpga = FpgaDense(dsp=4, dsp_per_product=2, clock_mhz=1.0)  # two products a microsecond
    nic = NicTimes({"embedding_lookup": 10.0, "irregular": 2.0}, interval_us=3.0)
    found = all_on_nic(workload(), devices(), INFERENCE, nic, fpga)
    # Samples 5; bottom 2 * 4 products behind which the lookups are done; top 7; predictions 5.
    assert MODEL.interaction_width == 7
    assert longest_us(found) == pytest.approx(5 + 12 + 3.5 + 5, abs=1e-3)
    trained = all_on_nic(workload(), devices(), TRAINING, replace(nic, update_us=1.0), fpga)
    assert longest_us(trained) > longest_us(found)


def test_tables_that_no_card_holds():
    large = replace(MODEL, rows=(10**9, 10**9))
    assert not_applicable(workload()) is None
    assert "16.0 GB of a node's card, which has 8 GB" in (not_applicable(
        workload(model=large)) or "")
