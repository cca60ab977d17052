"""TorchRec's collection of embedding bags, for programs that are written for the NICs."""

from typing import Any

import torch
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, KeyedJaggedTensor, KeyedTensor
from torchrec.modules.embedding_configs import DataType

from sim.torch.catching.capture import check_captured
from sim.torch.lookups.bags import DIMENSIONS

__all__ = ["NicEmbeddingBagCollection"]


class NicEmbeddingBagCollection(EmbeddingBagCollection):
    """A :class:`torchrec.EmbeddingBagCollection` whose bags only NICs look up.

    It has the signature, the parameters and the vectors of its parent, and refuses what the parent
    would do without NICs, as :class:`sim.torch.modules.NicEmbeddingBag` does. It is not sharded:
    the NICs' placement deals its tables.

    Raises
    ------
    ValueError
        A table's ``data_type`` is not ``DataType.FP32`` or its ``embedding_dim`` above 256, or
        ``device`` is not the CPU.
    RuntimeError
        Called where bags do not go to NICs.
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
        """Return the vectors of the bags of each feature, as the parent does."""
        check_captured(type(self).__name__)
        return super().forward(features)
