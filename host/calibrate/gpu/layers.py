"""MLPs in PyTorch, with their activations as operators or fused into the products."""

from collections.abc import Sequence
from typing import Any

from host.calibrate.gpu.device import Device

__all__ = ["Layers", "forward", "layers_of"]

Layers = Sequence[tuple[Any, Any]]
"""The weight, inputs by outputs, and the bias of each layer."""


def layers_of(device: Device, shapes: Sequence[tuple[int, int]]) -> Layers:
    """Return layers of these shapes on the device."""
    return [(device.floats(inputs, outputs), device.floats(outputs)) for inputs, outputs in shapes]


def forward(torch: Any, layers: Layers, data: Any, fused: bool, sigmoid: bool = True) -> Any:
    """Apply an MLP: ReLU after each layer, after the last a sigmoid if ``sigmoid``.

    ``fused``: bias and ReLU are part of the product.
    """
    for index, (weight, bias) in enumerate(layers):
        if sigmoid and index == len(layers) - 1:
            data = torch.sigmoid(torch.addmm(bias, data, weight))
        elif fused:
            data = torch._addmm_activation(bias, data, weight, use_gelu=False)
        else:
            data = torch.relu(torch.addmm(bias, data, weight))
    return data
