"""Small kernels of different mini-batches side by side: graphs of an MLP in several streams."""

from collections.abc import Iterator

from host.calibrate.gpu.device import Device
from host.calibrate.gpu.layers import forward, layers_of
from host.calibrate.reading import Missing, Reading, reading
from host.model import MODELS

__all__ = ["STREAMS", "together"]

STREAMS = (1, 2, 4, 8)
_SAMPLES = (32, 128, 512)
_ROUNDS = 20


def together(device: Device) -> Iterator[Reading]:
    """Yield the time per mini-batch of Kaggle's top MLP with 1 to 8 of them in flight.

    Each has its own stream, graph and data. What is shorter than one alone ran side by side.
    """
    if not device.cuda:
        raise Missing("nothing runs side by side without CUDA")
    torch, model = device.torch, MODELS["kaggle"]
    layers = layers_of(device, model.top_layers)
    streams = [torch.cuda.Stream() for _ in range(max(STREAMS))]
    for samples in _SAMPLES:
        replays = []
        for _ in streams:
            data = device.floats(samples, model.interaction_width)
            replays.append(device.capture(
                [lambda data=data: forward(torch, layers, data, True)] * 4))
        for count in STREAMS:

            def act(count: int = count) -> None:
                for stream, replay in zip(streams[:count], replays):
                    with torch.cuda.stream(stream):
                        replay()

            yield reading(f"together.{samples}.{count}_us", [
                us / (4 * count) for us in device.times(act, _ROUNDS)], "time per MLP with "
                f"{count} in flight, in graphs of 4")
