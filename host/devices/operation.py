"""Device-independent work of a DLRM operator: bytes to move and arithmetic to do."""

from dataclasses import dataclass, replace

from host.bounds import check_least

__all__ = ["TILE", "Operation"]

TILE = 64
"""Rows and columns of the outputs of a matrix product that a multiprocessor computes.

Libraries use tiles from 32 to 128.
"""


@dataclass(frozen=True)
class Operation:
    """Work of an action, or of consecutive actions of the same kind.

    Members
    -------
    name: kind, for reports.
    streamed_bytes: bytes read and written in address order.
    rows, row_bytes: number of rows read or written at random addresses, and the bytes of each.
    more_rows: further rows of other sizes, as pairs of the same two numbers.
    flops: float32 operations; a multiplication and an addition are two.
    operators: framework calls, each with its own kernels.
    kernels: kernels launched, at least ``operators``.
    matrix: whether the arithmetic is a matrix product.
    tiles: for a matrix product, the tiles of `TILE` x `TILE` outputs of all kernels, each on one
        multiprocessor; 0 for other operations.
    tile_flops: operations of a tile, including outputs outside the matrix; 0 if tiles have only
        ``flops``.
    fused_embedding: whether it is a framework's batched embedding operator, which has its own call
        cost.
    reads: reads in sequence in each operator, each at an address from the read before.

    Raises ``ValueError`` for a negative number, and for fewer kernels than operators.
    """

    name: str
    streamed_bytes: float = 0.0
    rows: int = 0
    row_bytes: int = 0
    flops: float = 0.0
    operators: int = 1
    kernels: int = 1
    matrix: bool = False
    tiles: float = 0
    tile_flops: float = 0
    fused_embedding: bool = False
    reads: int = 0
    more_rows: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        check_least(self, streamed_bytes=0, rows=0, row_bytes=0, reads=0, flops=0, operators=1,
                    kernels=self.operators, tiles=0, tile_flops=0)

    def row_traffic(self, access_bytes: int) -> int:
        """Return the bytes that its rows move if an access moves at least ``access_bytes``."""
        return sum(rows * -(-size // access_bytes) * access_bytes
                   for rows, size in ((self.rows, self.row_bytes), *self.more_rows))

    def with_work(self, other: "Operation") -> "Operation":
        """Return this action with the work of ``other`` of the same kind, in the same kernels."""
        return replace(self, streamed_bytes=self.streamed_bytes + other.streamed_bytes,
                       flops=self.flops + other.flops, more_rows=(
                           *self.more_rows, (other.rows, other.row_bytes), *other.more_rows))
