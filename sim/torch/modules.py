"""Modules that run only on NICs."""

from typing import TYPE_CHECKING, Any

import torch

from embernic_extras import require
from sim.torch.catching.capture import check_captured
from sim.torch.lookups.bags import DIMENSIONS

if TYPE_CHECKING:
    from sim.torch.collection import NicEmbeddingBagCollection

__all__ = ["NicEmbeddingBag", "NicEmbeddingBagCollection"]


def __getattr__(name: str) -> Any:
    # TorchRec is optional and takes seconds to import.
    if name != "NicEmbeddingBagCollection":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require("torchrec", name)
    from sim.torch.collection import NicEmbeddingBagCollection
    return NicEmbeddingBagCollection


class NicEmbeddingBag(torch.nn.EmbeddingBag):
    """A :class:`torch.nn.EmbeddingBag` that runs only on NICs.

    Signature, parameters and vectors are those of the parent class. It raises an error instead of
    running on PyTorch.

    Raises
    ------
    ValueError
        ``mode`` is ``max``, ``dtype`` is not float32, ``device`` is not the CPU, or
        ``embedding_dim`` exceeds 256.
    RuntimeError
        Called outside :func:`sim.api.attach` and ``sim torch``.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, *args: Any, **kwargs: Any) -> None:
        if embedding_dim > DIMENSIONS:
            raise ValueError(f"embedding_dim must be at most {DIMENSIONS}, not {embedding_dim!r}")
        super().__init__(num_embeddings, embedding_dim, *args, **kwargs)
        if self.mode == "max":
            raise ValueError("mode must be sum or mean, not 'max'")
        if self.weight.dtype != torch.float32:
            raise ValueError(f"dtype must be torch.float32, not {self.weight.dtype}")
        if self.weight.device.type != "cpu":
            raise ValueError(f"device must be cpu, not {str(self.weight.device)!r}")

    def forward(self, input: torch.Tensor, offsets: torch.Tensor | None = None,
                per_sample_weights: torch.Tensor | None = None) -> torch.Tensor:
        """Return the pooled vectors of the bags."""
        check_captured(type(self).__name__)
        return super().forward(input, offsets, per_sample_weights)
