"""Checks of the calibration's driver, kernels and items on a CUDA driver made for tests.

The module runs as a process of its own, in which ``libcuda.so.1`` is compiled from
``fake_cuda.cpp``: streams, graphs and kernels on the CPU. The package cuda-bindings, NVRTC and the
loops in C are real. It prints, as JSON, the error of each check, or null.
"""

import ctypes
import json
import threading
import traceback

import numpy as np
import torch

from host.calibrate.gpu import halves
from host.calibrate.gpu.device import Device, Sizes
from host.calibrate.gpu.driver import Driver, Word
from host.calibrate.gpu.items import en, gather, launch, resident, words
from host.calibrate.gpu.native import GRAPH, Action
from host.calibrate.gpu.plan import ITEMS
from host.calibrate.reading import Absent, Missing

_BLOCK = 4


class _Device(Device):
    """PyTorch's CPU device beside the driver, whose default stream is also waited for.

    A graph of both is a function that a stream calls. Its kernels have another stream and are
    waited for one by one, since PyTorch's operators finish at once.
    """

    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        self._inside, self._own = threading.local(), {}

    def wait(self):
        self.driver.synchronize(0)

    def _stream(self):
        return getattr(self._inside, "stream", 0)

    def kernel(self, *given):
        act = super().kernel(*given)

        def done():
            act()
            if self._stream():
                self.driver.synchronize(self._stream())

        return done

    def graph(self, act, root, stream):
        own = self._own.setdefault(stream, self.driver.stream())

        def whole():
            self._inside.stream = own
            with torch.no_grad():
                act()

        called = ctypes.CFUNCTYPE(None)(whole)
        self._kept.append(called)
        return Action(GRAPH, 0, 0, 0, self.driver._address("doInStream"),
                      ctypes.cast(called, ctypes.c_void_p), stream)


def _device():
    return _Device(torch, "cpu", 1, Sizes(1e-6), driver=Driver(90))


def _readings(item, device):
    """Return the readings and the absences of an item."""
    found, absent = {}, {}
    for each in ITEMS[item](device):
        if isinstance(each, Absent):
            absent[each.name] = each.reason
        else:
            found[each.name] = each.value
    return found, absent


def gathers_rows(device):
    random = np.random.default_rng(0)
    for width in (4, 16, 64):
        table = torch.from_numpy(random.random((100, width), np.float32))
        rows = torch.from_numpy(random.integers(0, 100, 37))
        out = torch.zeros(37, width)
        device.kernel("gather", "gather", 3, _BLOCK, table.data_ptr(), rows.data_ptr(),
                      out.data_ptr(), Word(37), Word(width // 4))()
        device.wait()
        assert torch.equal(out, table[rows])


def pools_bags(device):
    random = np.random.default_rng(1)
    sizes, samples, width = (7, 3, 50), 11, 8
    first = np.array([0, 7, 10], np.int64)
    lengths = random.integers(0, 5, samples * len(sizes))
    lengths[0] = 0
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    tables = np.repeat(np.arange(samples * len(sizes)) % len(sizes), lengths)
    keys = np.array([random.integers(0, sizes[table]) for table in tables], np.int64)
    rows = random.random((sum(sizes), width), np.float32)
    wanted = np.zeros((samples * len(sizes), width), np.float32)
    for bag in range(len(wanted)):
        for key in keys[offsets[bag]:offsets[bag + 1]]:
            wanted[bag] += rows[first[bag % len(sizes)] + key]
    given = [torch.from_numpy(array) for array in (rows, first, keys, offsets)]
    out = torch.full(wanted.shape, 9.0)
    device.kernel("embedding", "embedding", 2, _BLOCK, *(each.data_ptr() for each in given),
                  out.data_ptr(), Word(len(wanted)), Word(len(sizes)), Word(width // 4))()
    device.wait()
    assert np.array_equal(out.numpy(), wanted)


def expands_pools_and_interacts(device):
    random = np.random.default_rng(2)
    samples, tables, pooled, width = 5, 3, 2, 8
    vectors = random.random((9, width), np.float32)
    index = random.integers(0, 9, (samples, tables, pooled)).astype(np.uint16)
    dense = random.random((samples, width), np.float32)
    bags = vectors[index[:, :, 0]] + vectors[index[:, :, 1]]
    every = np.concatenate([dense[:, None], bags], 1)
    wanted = [dense]
    for row in range(1, tables + 1):
        for column in range(row):
            total = every[:, row, 0] * every[:, column, 0]
            for lane in range(1, width):
                total = total + every[:, row, lane] * every[:, column, lane]
            wanted.append(total[:, None])
    wanted = np.concatenate(wanted, 1)
    given = [torch.from_numpy(each) for each in (vectors, index.view(np.int16), dense)]
    out = torch.full(wanted.shape, 9.0)
    device.kernel("expand", "expand", 2, 1, *(each.data_ptr() for each in given), out.data_ptr(),
                  Word(samples), Word(tables), Word(pooled), Word(width // 4))()
    device.wait()
    assert np.array_equal(out.numpy(), wanted)


def a_branch_waits_for_its_word(device):
    driver = device.driver
    stream = driver.stream()
    bell, flags = torch.zeros(1, dtype=torch.int64), torch.zeros(2, dtype=torch.int32)
    touch = [driver.launch(stream, "touch", "touch", 1, _BLOCK, flags.data_ptr() + 4 * each,
                           Word(1)) for each in (0, 1)]
    whole = driver.branches(stream, [[touch[0], (bell.data_ptr(), 7), touch[1]]])
    assert flags.tolist() == [0, 0]  # captured, not executed
    driver.loops.until(whole, flags.data_ptr(), 1)
    assert flags.tolist() == [1, 0]
    driver.loops.ring(bell.data_ptr(), 7, flags.data_ptr() + 4, 1)
    driver.synchronize(stream)
    assert flags.tolist() == [1, 1]


def stores_then_says_so(device):
    driver = device.driver
    stream, source = driver.stream(), torch.arange(1003 * 4, dtype=torch.float32)
    to, done = torch.zeros(1003 * 4), torch.zeros(1, dtype=torch.int32)
    flag = torch.zeros(1, dtype=torch.int32)
    action = driver.launch(stream, "stores", "stores", 3, _BLOCK, source.data_ptr(), to.data_ptr(),
                           Word(1003), done.data_ptr(), flag.data_ptr(), Word(5))
    for _ in range(3):
        to.zero_()
        flag.zero_()
        called, seen = driver.loops.until(action, flag.data_ptr(), 5)
        assert called <= seen and torch.equal(to, source)
        driver.synchronize(stream)
        assert done.item() == 0


def a_graph_does_its_actions_in_order(device):
    driver = device.driver
    stream = driver.stream()
    data = torch.zeros(12)
    at, row = data.data_ptr(), torch.zeros(1, dtype=torch.int64)
    numbers = [torch.full((4,), float(each)) for each in (1, 2)]

    def copied(to, source):
        return driver.launch(stream, "gather", "gather", 1, _BLOCK, source, row.data_ptr(), to,
                             Word(1), Word(1))

    actions = [copied(at, numbers[0].data_ptr()), copied(at + 16, at),
               copied(at, numbers[1].data_ptr()), copied(at + 32, at)]
    whole = driver.graph(stream, actions)
    assert data.tolist() == 12 * [0]  # captured, not executed
    driver.loops.row([whole, driver.wait(stream)])
    assert data.tolist() == 4 * [2] + 4 * [1] + 4 * [2]


def a_resident_kernel_serves_lists(device):
    table = torch.arange(64 * 16, dtype=torch.float32).view(64, 16)
    mailbox, stream = resident.Mailbox(device, table), device.driver.stream()
    for blocks in (1, 2):
        with mailbox.served(stream, blocks):
            for number, count in enumerate((3, 0, 8, 1), 1):
                assert mailbox.ask(count) > 0
                rows = mailbox.lists[number % 16 * count:][:count]
                assert torch.equal(mailbox.out[:16 * count].view(-1, 16), table[rows])


def a_resident_kernel_leaves_when_nobody_asks(device):
    limit, resident._LIMIT_NS = resident._LIMIT_NS, 30_000_000
    try:
        mailbox = resident.Mailbox(device, torch.zeros(8, 16))
        stream = device.driver.stream()
        with mailbox.served(stream, 2):
            device.driver.synchronize(stream)  # returns although the kernel was not told to end
    finally:
        resident._LIMIT_NS = limit


def items_yield_what_they_say(device):
    resident.BLOCKS = (1, 2)
    gather.BLOCK, gather.ROWS, gather._MOST_BLOCKS = _BLOCK, 8, 2
    wanted = {
        "launch": {"launch.call_us", "launch.single_us", "launch.first_idle_us"},
        "graph": {"graph.14.python_us", "graph.14.call_us"},
        "branches": {"branches.1.call_us", "branches.4.call_us", "branches.4.node_us"},
        "release": {"release.poll_us"}, "held": {"held.1.in_order.first_us"},
        "resident": {f"resident.{blocks}.{what}_us" for blocks in (1, 2)
                     for what in ("round_trip", "1_rows")},
        "gather": {f"gather.8x{size}B.kernel.cold_us" for size in (64, 256)}}
    assert launch.KERNELS == 14
    for item, names in wanted.items():
        found, absent = _readings(item, device)
        assert set(found) == names and not absent, item
        assert item == "branches" or all(value > 0 for value in found.values()), item
    found, _ = _readings("launch", device)
    assert found["launch.first_idle_us"] >= found["launch.single_us"]


def _whole_graphs(device, most=(1, 2), forms=("",)):
    products = en._PRODUCTS
    en._PRODUCTS = {form: products[form] for form in forms}
    halves.BLOCK, halves._MOST_BLOCKS = 1, 2
    en.CASES, en.PER_GRAPH, en.IN_FLIGHT = (("kaggle", 4, 1e-4),), most, 4
    en._MINI_BATCHES, en._REPLAYS = 8, 2
    device.sizes.scale = 1e-4  # in tables of one row, all keys would be equal
    try:
        return _readings("en", device)
    finally:
        device.sizes.scale = 1e-6
        en._PRODUCTS = products


def whole_graphs_of_both_systems_are_timed(device):
    found, absent = _whole_graphs(device, (1, 2), ("", "tf32."))
    assert not absent, absent
    assert set(found) == {f"en.kaggle.4.{form}{what}_us" for form in ("", "tf32.") for what in (
        *(f"{kind}.{each}.{time}" for kind in en.HALVES for each in (1, 2)
          for time in ("call", "replay", "interval")),
        "en.1.latency", "en.1.alone", "tuned.1.alone")}
    assert all(value > 0 for value in found.values())


def _broken(device, name, value, wanted):
    """Check which results are absent if an attribute of `halves` is ``value``; no call may hang."""
    right = getattr(halves.Half, name)
    setattr(halves.Half, name, value(right))
    try:
        found, absent = _whole_graphs(device, (1,))
    finally:
        setattr(halves.Half, name, right)
    assert set(absent) == set(wanted) and all(
        reason in absent[each] for each, reason in wanted.items()), absent
    assert not [each for each in found for name in wanted if each.startswith(name)]


def graphs_that_predict_otherwise_are_missing(device):
    def other_vectors(right):
        def awaited(self, nth):
            vectors, index, wait = right(self, nth)
            return vectors.flip(0), index, wait
        return awaited

    _broken(device, "_awaited", other_vectors, {
        "en.kaggle.4.en.1": "predictions differ by 0.0"})


def graphs_that_do_not_wait_are_missing(device):
    def at_once(right):
        def awaited(self, nth):
            vectors, index, _ = right(self, nth)
            return vectors, index, lambda: None
        return awaited

    settled, en._SETTLED_S = en._SETTLED_S, 2.0
    try:
        _broken(device, "_awaited", at_once, {"en.kaggle.4.en.1": "graph did not wait"})
    finally:
        en._SETTLED_S = settled


def words_that_never_come_end_a_graph(device):
    limit, halves.LIMIT_NS = halves.LIMIT_NS, 20_000_000
    late, en.ANSWER_US = en.ANSWER_US, 1e6
    try:
        found, absent = _whole_graphs(device, (1,))
        assert absent == {
            "en.kaggle.4.en.1": "a graph did not wait for its words, or stopped waiting"}, absent
        assert "en.kaggle.4.tuned.1.interval_us" in found
    finally:
        halves.LIMIT_NS, en.ANSWER_US = limit, late


def the_drivers_errors_are_reasons(device):
    driver = device.driver
    for act, reason in (
            (lambda: driver.kernel("touch", "none"), "cuModuleGetFunction failed: "),
            (lambda: driver.perform(driver.launch(0, "touch", "nothing", 0, 1)),
             "the driver reported error 1"),
            (lambda: driver._call("cuMemAlloc", 8), "cuMemAlloc cannot be called: ")):
        try:
            act()
        except Missing as missing:
            assert str(missing).startswith(reason), missing
        else:
            raise AssertionError(f"nothing was missing: {reason}")


def graphs_wait_for_a_flag_that_is_late(device):
    """The time limit of a polling node frees the stream."""
    limit, words._LIMIT_NS = words._LIMIT_NS, 20_000_000
    try:
        driver = device.driver
        stream, bell = driver.stream(), torch.zeros(1, dtype=torch.int64)
        flag = torch.zeros(1, dtype=torch.int32)
        poll = driver.launch(stream, "released", "released", 1, 1, bell.data_ptr(), Word(1),
                             words._LIMIT_NS)
        touch = driver.launch(stream, "touch", "touch", 1, 1, flag.data_ptr(), Word(1))
        _, seen = driver.loops.until(driver.graph(stream, [poll, touch]), flag.data_ptr(), 1)
        assert seen > 15_000
    finally:
        words._LIMIT_NS = limit


CHECKS = (gathers_rows, pools_bags, expands_pools_and_interacts, a_branch_waits_for_its_word,
          stores_then_says_so, a_graph_does_its_actions_in_order,
          a_resident_kernel_serves_lists, a_resident_kernel_leaves_when_nobody_asks,
          graphs_wait_for_a_flag_that_is_late, the_drivers_errors_are_reasons,
          whole_graphs_of_both_systems_are_timed,
          graphs_that_predict_otherwise_are_missing,
          graphs_that_do_not_wait_are_missing, words_that_never_come_end_a_graph,
          items_yield_what_they_say)


def main():
    """Run all checks on one device."""
    resident.BLOCK = 1  # see fake_cuda.cpp
    device, said = _device(), {}
    for check in CHECKS:
        try:
            with torch.no_grad():
                check(device)
            said[check.__name__] = None
        except Exception:
            said[check.__name__] = traceback.format_exc()
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
