"""MLPs from 8 to 2,048 samples, with their activations as kernels and fused into the products."""

from collections.abc import Iterator
from functools import partial

from host.calibrate.gpu.device import Device
from host.calibrate.gpu.layers import forward, layers_of
from host.calibrate.reading import Absent, Reading, reading
from host.model import MODELS

__all__ = ["SAMPLES", "mlp"]

SAMPLES = (8, 32, 128, 512, 2048)
_TIMES = 8
"""MLPs of a series."""


def mlp(device: Device) -> Iterator[Reading | Absent]:
    """Yield the time of both MLPs of Kaggle: in a graph, and called from Python and waited for."""
    torch, model = device.torch, MODELS["kaggle"]
    shapes = {"bottom": model.bottom_layers, "top": model.top_layers}
    layers = {part: layers_of(device, shape) for part, shape in shapes.items()}
    for samples in device.sizes.batches(SAMPLES):
        for part, shape in shapes.items():
            data = device.floats(samples, shape[0][0])
            for name, fused in (("plain", False), ("fused", True)):
                if fused and not hasattr(torch, "_addmm_activation"):
                    yield Absent("mlp.fused", "this PyTorch has no product with an activation")
                    continue
                act = partial(forward, torch, layers[part], data, fused, part == "top")
                about = ("activations fused into products" if fused
                         else "a kernel for each product and each activation")
                yield reading(f"mlp.{part}.{samples}.{name}_us", device.gpu([act] * _TIMES),
                              f"{about}; in a graph")
                yield reading(f"mlp.{part}.{samples}.{name}_eager_us", device.times(act),
                              f"{about}; called from Python, with the wait")
            half = [(weight.half(), bias.half()) for weight, bias in layers[part]]
            act = partial(forward, torch, half, data.half(), hasattr(torch, "_addmm_activation"),
                          part == "top")
            yield reading(f"mlp.{part}.{samples}.half_us", device.gpu([act] * _TIMES),
                          "values of float16, activations fused into products; in a graph")

