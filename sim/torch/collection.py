"""TorchRec collection of embedding bags that runs only on NICs."""

from typing import Any

import torch
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, KeyedJaggedTensor, KeyedTensor
from torchrec.modules.embedding_configs import DataType

from sim.torch.catching.capture import check_captured
from sim.torch.lookups.bags import DIMENSIONS

__all__ = ["NicEmbeddingBagCollection"]


class NicEmbeddingBagCollection(EmbeddingBagCollection):
    """A :class:`torchrec.EmbeddingBagCollection` that runs only on NICs.

    Signature, parameters and vectors are those of the parent class. It raises an error instead of
    running on PyTorch, like :class:`sim.torch.modules.NicEmbeddingBag`. It is not sharded: the
    NICs' placement distributes its tables.

    Raises
    ------
    ValueError
        A table's ``data_type`` is not ``DataType.FP32``, its ``embedding_dim`` exceeds 256, or
        ``device`` is not the CPU.
    RuntimeError
        Called outside :func:`sim.api.attach` and ``sim torch``.
    """

    def __init__(self, tables: list[EmbeddingBagConfig], *args: Any, **kwargs: Any) -> None:
        for table in tables:
            if table.embedding_dim > DIMENSIONS:
                raise ValueError(f"embedding_dim of table {table.name!r} must be at most "
                                 f"{DIMENSIONS}, not {table.embedding_dim}")
            if table.data_type != DataType.FP32:
                raise ValueError(f"data_type of table {table.name!r} must be DataType.FP32, "
                                 f"not {table.data_type}")
        super().__init__(tables, *args, **kwargs)
        if torch.device(self.device).type != "cpu":
            raise ValueError(f"device must be cpu, not {str(self.device)!r}")

    def forward(self, features: KeyedJaggedTensor) -> KeyedTensor:
        """Return the pooled vectors of each feature."""
        check_captured(type(self).__name__)
        return super().forward(features)
