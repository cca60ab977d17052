"""Operations: what an operator of a DLRM has to move and to compute, whatever it runs on."""

from dataclasses import dataclass

__all__ = ["Operation"]


@dataclass(frozen=True)
class Operation:
    """Work of one action, or of several of the same kind one after the other.

    Members
    -------
    name: of its kind, for reports.
    streamed_bytes: read and written in the order of their addresses.
    rows, row_bytes: rows read or written anywhere in memory, and the bytes of each.
    flops: float32 operations; a multiplication and an addition are two.
    operators: calls of the framework that it takes, each of its own kernels.
    kernels: that it launches, at least ``operators``.
    matrix: whether its operations are those of a matrix product.
    fused_embedding: whether it is a batched embedding operator of a framework, whose calls have a
        price of their own.

    Raises ``ValueError`` for what is negative, and for fewer kernels than operators.
    """

    name: str
    streamed_bytes: float = 0.0
    rows: int = 0
    row_bytes: int = 0
    flops: float = 0.0
    operators: int = 1
    kernels: int = 1
    matrix: bool = False
    fused_embedding: bool = False

    def __post_init__(self) -> None:
        for name, least in (("streamed_bytes", 0), ("rows", 0), ("row_bytes", 0), ("flops", 0),
                            ("operators", 1), ("kernels", self.operators)):
            if not getattr(self, name) >= least:
                raise ValueError(f"{name} must be at least {least}, not {getattr(self, name)!r}")

    def row_traffic(self, access_bytes: int) -> int:
        """Return the bytes that its rows move where an access moves whole ``access_bytes``."""
        return self.rows * -(-self.row_bytes // access_bytes) * access_bytes
