"""Systems with SmartNICs: steps worked out by hand, and the effect of each part."""

from dataclasses import replace

import pytest

from host.devices.copies import CopyTime
from host.devices.embedding_work import gather
from host.devices.gpu_time import GpuTime
from host.systems import NicTimes, StepOptions, all_on_nic, breakdown, schedule, smartnic
from host.systems.all_on_nic import FpgaDense, not_applicable
from host.systems.charge import longest_us
from host.systems.schedule import kernels_us
from host.timing.pcie import PcieProfile
from tests.host.systems.simple import EAGER, MODEL, TUNED, devices, workload

INFERENCE, TRAINING = StepOptions(), StepOptions(training=True)
NIC = NicTimes({"input_all_to_all": 20.0, "embedding_lookup": 50.0, "embedding_all_to_all": 10.0,
                "overhead": 5.0, "irregular": 7.0}, interval_us=30.0)


def step(nic=NIC, software=None, options=INFERENCE, **parts):
    d = devices(software=software) if software else devices()
    return smartnic(workload(), d, options, nic, **parts)


def names(found) -> set[str]:
    return {stage.name for stage in found.stages}


def test_the_nic_is_waited_for():
    # The call of a doorbell 11, PCIe 0.5 and 0.5 for the queries; the NIC 92, meanwhile dense
    # features and the bottom MLP on the GPU; synchronize 3; the calls of interaction and top MLP,
    # 6 operators, and of the predictions' copy behind the last; PCIe 0.5 and synchronize 3.
    assert longest_us(step()) == pytest.approx(11 + 1 + 92 + 3 + 60 + 5 + 0.5 + 3, abs=1e-3)


def test_with_computation_the_nic_interacts_behind_the_bottom_mlp():
    quick = replace(NIC, phases={"embedding_lookup": 1.0, "irregular": 2.0}, interaction_us=7.0)
    found = step(quick, computation=True)
    # The doorbell; dense features called at 16, the bottom MLP at 26 and 36, done at 39 and waited
    # for until 42; a doorbell, PCIe and the NIC's interaction; waiting; the top MLP's calls.
    assert longest_us(found) == pytest.approx(42 + 11 + 0.5 + 7 + 3 + 20 + 5 + 0.5 + 3, abs=1e-3)
    assert "interaction" not in names(found) and "interaction" in names(step(quick))


def test_lookups_or_dense_vectors_come_last():
    def us(**times) -> float:
        return longest_us(step(replace(NIC, **times), computation=True))

    # Lookups take long: behind the dense vectors there is time for 40 us.
    assert us(interaction_us=40.0) == us()
    quick = {"embedding_lookup": 1.0, "irregular": 7.0}
    assert us(phases=quick, interaction_us=40.0) == us(phases=quick, interaction_us=0.0) + 40


def test_own_bags_are_pooled_behind_the_input_copy():
    """Their keys are integers of 8 bytes."""
    slow = replace(devices(), copies=CopyTime(PcieProfile("slow", 0.5, 1e-3), EAGER))
    nic = replace(NIC, own_rows=100.0, own_bags=1.0, launches=2.0, pooled_launches=2.0,
                  pooled_rows=30.0, pooled_bags=4.0)
    alone, found = (smartnic(workload(), slow, INFERENCE, each) for each in (NIC, nic))
    assert "own bags" not in names(alone)
    *_, own = (stage for stage in found.stages if stage.name == "own bags")  # after its call
    assert own.us == devices().gpu.kernels(gather(100, 1, MODEL.width, fused=True)).us
    copied = max(at for at, stage in enumerate(found.stages) if stage.name == "dense features")
    assert copied in own.after
    pcie = [schedule([each]).busy["pcie_in"] for each in (alone, found)]
    assert pcie[1] - pcie[0] == pytest.approx(8 * (100 + 1))
    assert "bags of other nodes" in names(found) and "bags of other nodes" not in names(alone)


def test_nothing_on_gives_the_nic_alone():
    alone = step(NIC)
    assert [(s.name, s.us) for s in step(NIC, computation=False, local_cache=False).stages] == [
        (s.name, s.us) for s in alone.stages]
    # In inference, a local cache changes only the NICs' times.
    assert step(NIC, local_cache=True).stages == alone.stages


def interval(found) -> float:
    """Return the mean time between the ends of many steps in flight."""
    ends = schedule([found] * 40, 4).finished
    return (ends[-1] - ends[7]) / 32


def test_the_nic_is_held_for_its_interval_only():
    busy = schedule([step()]).busy
    assert busy["nic"] == 30.0
    # The host's thread, with 6 + 3 + 2 operators and copies, is the bottleneck.
    assert interval(step()) == pytest.approx(busy["cpu"], rel=0.02)
    # The interaction occupies the NIC for its remainder after the lookups.
    for us in (90.0, 30.0):
        found = step(replace(NIC, interval_us=us), computation=True)
        assert schedule([found]).busy["nic"] == us
    slow = replace(NIC, interval_us=80.0)
    assert interval(step(slow, TUNED)) == pytest.approx(80, rel=0.02)
    assert longest_us(step(slow)) == longest_us(step())


@pytest.mark.parametrize("software", [None, TUNED])
def test_gathers_are_launches_of_the_drivers_thread(software):
    plain, called = (schedule([step(replace(NIC, launches=launches), software=software)]).busy
                     for launches in (0.0, 4.0))
    assert called["driver"] == 4 * 4 and "driver" not in plain
    assert called["cpu"] == plain["cpu"]


def test_gathers_occupy_the_gpu_and_its_memory():
    d = devices()
    slow = replace(d, gpu=GpuTime(replace(d.gpu.gpu, memory_bandwidth_gb_s=0.032), d.software))
    nic = replace(NIC, gathers=2.0, gathered=10.0)
    found, plain = (schedule([smartnic(workload(), slow, INFERENCE, times)]).busy
                    for times in (nic, NIC))
    each = slow.gpu.kernels(gather(5, 5, MODEL.dimension))  # a gather of five rows
    assert 10 < each.us < 25 and 0.8 < each.memory_share < 1
    assert found["gpu"] - plain["gpu"] == pytest.approx(2 * each.us * each.share)
    assert found["gpu_memory"] - plain["gpu_memory"] == pytest.approx(
        2 * each.us * each.memory_share)


def test_a_step_has_kernels_while_gathers_run_and_not_while_nics_look_up():
    d = devices()
    one = d.gpu.kernels(gather(5, 5, MODEL.dimension)).us
    found, plain = (kernels_us(smartnic(workload(), d, INFERENCE, times)) for times in (
        replace(NIC, gathers=2.0, gathered=10.0), NIC))
    assert 2 * one < NIC.phases["embedding_lookup"]
    assert found - plain == pytest.approx(2 * one)
    most = replace(NIC, gathers=100.0, gathered=500.0)
    assert kernels_us(smartnic(workload(), d, INFERENCE, most)) - plain == pytest.approx(
        NIC.phases["embedding_lookup"])


def test_pcie_and_the_network_carry_what_the_nic_moves():
    d = devices()
    pcie = PcieProfile("pcie", 0.5, 1e-3)  # a byte a microsecond
    slow = replace(d, pcie=pcie, copies=CopyTime(pcie, d.software),
                   network=replace(d.network, bandwidth_gbit_s=8e-3))
    nic = replace(NIC, gathers=1.0, gathered=10.0, sent_bytes=7.0, delivered_bytes=123.0)
    found = schedule([smartnic(workload(), slow, INFERENCE, nic)]).busy
    # What NICs deliver, and two dense features to the GPU; rows and a prediction from it.
    assert found["pcie_in"] == pytest.approx(123 + 4 * 2)
    assert found["pcie_out"] == pytest.approx(16 * 10 + 4) and found["link"] == pytest.approx(7)
    own = schedule([smartnic(workload(), slow, INFERENCE, nic, computation=True)]).busy
    # And a dense vector to the NIC.
    assert own["pcie_in"] == pytest.approx(123 + 4 * 2)
    assert own["pcie_out"] == pytest.approx(16 * 10 + 4 + 16)


def test_a_row_update_uses_the_driver_the_gpu_and_both_directions_of_its_link():
    w, d = workload(), devices()
    slow = replace(d, copies=CopyTime(PcieProfile("pcie", 0.5, 1e-3), d.software))
    plain = replace(NIC, update_us=400.0)
    found, none = (schedule([smartnic(w, slow, TRAINING, nic, computation=True)]).busy for nic in (
        replace(plain, update_launches=3.0, updated=5.0, missed=2.0), plain))
    used = {name: us - none.get(name, 0.0) for name, us in found.items()}
    each = d.gpu.kernels(gather(2, 2, MODEL.dimension))
    assert used["driver"] == 3 * 4 and used["gpu"] == pytest.approx(3 * each.us * each.share)
    # Rows and their records to the GPU, and records of missed rows; missed rows from the GPU.
    assert used["pcie_in"] == pytest.approx(5 * (16 + 8) + 2 * 8)
    assert used["pcie_out"] == pytest.approx(2 * 16)
    # Gradients of bags with the records of their keys leave the GPU.
    gradients = float((16 * w.bags.sum(axis=1) + 8 * w.lookups.sum(axis=1)).max())
    without = schedule([smartnic(w, slow, StepOptions(True, False), plain, True)]).busy["pcie_out"]
    assert without == pytest.approx(gradients)


def test_gradients_and_rows_pass_the_slower_of_the_links_of_nic_and_gpu():
    w, d = workload(), devices()
    slow = replace(d, pcie=PcieProfile("pcie", 0.5, 1e-3))
    found, fast = (smartnic(w, each, TRAINING, NIC, local_cache=True) for each in (slow, d))
    for name, size in (("gradients", 16 * max(w.bags.sum(axis=of).max() for of in (0, 1))),
                       ("rows to the cache", 16 * w.unique.max())):
        longer = [sum(stage.us for stage in of.stages if stage.name == name and
                      "nic" in stage.resources) for of in (found, fast)]
        assert longer[0] - longer[1] == pytest.approx(size, rel=1e-6)


@pytest.mark.parametrize("options", [INFERENCE, TRAINING])
@pytest.mark.parametrize("computation", [False, True])
@pytest.mark.parametrize("cache", [False, True])
def test_breakdowns_add_up(options, computation, cache):
    found = step(replace(NIC, update_us=40.0, launches=2.0), options=options,
                 computation=computation, local_cache=cache)
    assert sum(breakdown(found).values()) == pytest.approx(schedule([found]).finished[0])


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


def test_everything_on_the_nic_by_hand():
    fpga = FpgaDense(dsp=4, dsp_per_product=2, clock_mhz=1.0)  # two products a microsecond
    nic = NicTimes({"embedding_lookup": 10.0, "irregular": 2.0}, interval_us=3.0)
    found = all_on_nic(workload(), devices(), INFERENCE, nic, fpga)
    # A doorbell 1, samples over PCIe there and back 1; bottom 2 * 4 products behind which the
    # lookups are done; top 7; predictions over PCIe 0.5 and the wait for them 3.
    assert MODEL.interaction_width == 7
    assert longest_us(found) == pytest.approx(2 + 12 + 3.5 + 3.5, abs=1e-3)
    trained = all_on_nic(workload(), devices(), TRAINING, replace(nic, update_us=1.0), fpga)
    assert longest_us(trained) > longest_us(found)
    assert kernels_us(found) == kernels_us(trained) == 0, "a card has no kernels"


def test_tables_that_no_card_holds():
    large = replace(MODEL, rows=(10**9, 10**9))
    assert not_applicable(workload()) is None
    assert "16.0 GB of a node's card, which has 8 GB" in (not_applicable(
        workload(model=large)) or "")
