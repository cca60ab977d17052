"""Small files of every format, generated from a seed."""

import io
import random
from pathlib import Path

import numpy as np

from host.data.readers import avazu


def criteo_lines(count: int, seed: int = 1) -> list[str]:
    """Return lines of Criteo with missing values and values of every length."""
    rng = random.Random(seed)
    lines = []
    for _ in range(count):
        integers = [rng.choice(["", "0", "-2", str(rng.randrange(1 << 31))]) for _ in range(13)]
        categories = [rng.choice(["", "%08x", "%x", "%08X"]) for _ in range(26)]
        categories = [form and form % rng.getrandbits(32) for form in categories]
        lines.append("\t".join([str(rng.randrange(2)), *integers, *categories]))
    return lines


def avazu_lines(count: int, seed: int = 2) -> list[str]:
    """Return lines of Avazu, the header first."""
    rng = random.Random(seed)
    lines = [avazu.HEADER]
    for number in range(count):
        texts = [rng.choice(["", "-1", "1005", f"{rng.getrandbits(32):08x}", "a longer category",
                             "x" * rng.randrange(40)]) for _ in avazu.COLUMNS]
        lines.append(",".join([str(10 ** 19 + number), str(rng.randrange(2)),
                               f"1410{rng.randrange(1, 31):02}{rng.randrange(24):02}", *texts]))
    return lines


def npz_arrays(count: int, seed: int = 3, dense: int = 13, tables: int = 26,
               ) -> dict[str, np.ndarray]:
    """Return arrays in the form of DLRM's preprocessing: X_cat is float64 in Fortran order."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 1000, tables)
    keys = np.zeros((tables, count))
    keys[:] = rng.integers(0, counts[:, None], (tables, count))
    return {"X_cat": keys.T, "X_int": rng.integers(-2, 1000, (count, dense)).astype(np.int32),
            "y": rng.integers(0, 2, count).astype(np.int32), "counts": counts.astype(np.int32)}


def npz_bytes(arrays: dict[str, np.ndarray], compressed: bool = True) -> bytes:
    file = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(file, **arrays)
    return file.getvalue()


def npy_bytes(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def write(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path
