"""Graphs of several mini-batches, a branch each: what the launch of a further one costs."""

from collections.abc import Iterator

from host.calibrate.gpu.device import ROUNDS, Device
from host.calibrate.gpu.driver import Word
from host.calibrate.gpu.items.launch import first_seen
from host.calibrate.gpu.layers import forward, layers_of
from host.calibrate.reading import Absent, Missing, Reading, reading
from host.model import MODELS

__all__ = ["BRANCHES", "KERNELS", "branches"]

BRANCHES = (1, 2, 4, 8)
KERNELS = 14
"""Kernels of a branch: those of a mini-batch."""
_SAMPLES = (32, 128)
_REPLAYS = 20


def branches(device: Device) -> Iterator[Reading | Absent]:
    """Yield the host's time of graphs of `BRANCHES` branches, and what a branch takes of the GPU.

    A branch is `KERNELS` empty kernels, for the launch, and Kaggle's top MLP, for the GPU's time.
    """
    yield from _mlps(device)
    try:
        yield from _launches(device)
    except Missing as missing:
        yield Absent("branches.driver", str(missing))


def _launches(device: Device) -> Iterator[Reading]:
    driver = device.driver
    stream = driver.stream()
    wait = driver.wait(stream)
    flag = device.pinned(1, device.torch.int32)
    empty = driver.launch(stream, "touch", "nothing", 1, 32)
    touch = driver.launch(stream, "touch", "touch", 1, 32, flag.data_ptr(), Word(1))
    alone = 0.0
    for count in BRANCHES:
        whole = driver.branches(stream, [[touch, *[empty] * (KERNELS - 1)]] * count)
        calls, first = first_seen(device, driver, whole, flag, 8 * device.repeats)
        series = driver.series(whole, ROUNDS // 2, 4 * device.repeats)
        name, about = f"branches.{count}", f"a graph of {count} branches of {KERNELS} kernels"
        found = reading(f"{name}.call_us", series, f"host time of the launch of {about}, in a "
                        "series, from C")
        yield found
        yield reading(f"{name}.launch_us", calls, f"host time of one launch of {about}, to an "
                      "idle GPU, from C")
        yield reading(f"{name}.first_us", first, f"from the launch of {about} until the host sees "
                      "a branch's first store; idle GPU")
        yield reading(f"{name}.replay_us", [
            driver.loops.row([whole] * _REPLAYS + [wait]) / _REPLAYS
            for _ in range(2 * device.repeats)], f"{about}, {_REPLAYS} back to back, each")
        if count == 1:
            alone = found.value
        else:
            yield reading(f"{name}.node_us", [
                (us - alone) / (KERNELS * (count - 1)) for us in series], "what each kernel of a "
                f"further branch adds to the launch; {count} branches")


def _mlps(device: Device) -> Iterator[Reading | Absent]:
    """Yield the GPU's time per MLP of graphs of several, one behind the other and side by side."""
    if not device.cuda:
        yield Absent("branches.mlp", "nothing runs side by side without CUDA")
        return
    torch, model = device.torch, MODELS["kaggle"]
    layers = layers_of(device, model.top_layers)
    for samples in _SAMPLES:
        for count in BRANCHES:
            data = [device.floats(samples, model.interaction_width) for _ in range(count)]
            sides = [torch.cuda.Stream() for _ in data]

            def act(data=data, sides=sides) -> None:
                here = torch.cuda.current_stream()
                for side, each in zip(sides, data):
                    side.wait_stream(here)
                    with torch.cuda.stream(side):
                        forward(torch, layers, each, True)
                for side in sides:
                    here.wait_stream(side)

            yield reading(f"branches.{count}.mlp.{samples}_us", [
                us / count for us in device.times(device.capture([act]), _REPLAYS)],
                f"Kaggle's top MLP of {samples} samples, per MLP of a graph that has {count} side "
                "by side")
