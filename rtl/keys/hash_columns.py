"""The key hash: constants and plain-integer form, shared by hardware and host.

An H3 hash (Carter and Wegman, 1979): the XOR of one constant for each bit set in the key ``row |
table << 36``. In hardware the hash is a few levels of XOR. Two keys collide in the top ``b`` bits
with probability 2^-b over the choice of constants. The constants are the output of splitmix64.
"""

__all__ = ["COLUMNS", "HASH_BITS", "KEY_BITS", "key_hash"]

HASH_BITS = 32
KEY_BITS = 48


def _splitmix64(state: int) -> int:
    mask = (1 << 64) - 1
    z = (state * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


COLUMNS = tuple(_splitmix64(bit + 1) >> 32 for bit in range(KEY_BITS))
"""Constant of each key bit, least significant first."""


def key_hash(table: int, row: int) -> int:
    """Return the 32-bit hash of a key. Sets use the high bits, row owners the low 16."""
    key, value = row | table << 36, 0
    for bit, column in enumerate(COLUMNS):
        if key >> bit & 1:
            value ^= column
    return value
