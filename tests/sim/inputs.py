"""Files made by the tests: samples, each from a seed, and a model."""

import random
from pathlib import Path


def multi_hot_trace(path: Path, samples: int, seed: int = 5, longest: int = 40) -> Path:
    """Write a key trace: 4 tables, bags of 0 to ``longest`` keys, keys repeated inside a bag."""
    rng = random.Random(seed)
    lines = []
    for number in range(samples):
        keys = []
        for table, rows in enumerate((50, 3000, 1 << 20, 7)):
            length = longest if number == table else min(
                longest, rng.choice([0, 0, 1, 1, 2, 3, 8, rng.randrange(longest + 1)]))
            bag = [rng.randrange(rows) for _ in range(length)]
            if length > 2:
                bag[-1] = bag[0]
            keys += [f"{table}:{row}" for row in bag]
        lines.append(" ".join(keys))
    lines[-1] = "0:0 1:0 2:0 3:0"
    path.write_text("\n".join(lines) + "\n")
    return path


def criteo(path: Path, samples: int, seed: int = 6) -> Path:
    """Write a Criteo TSV with missing integers and categories."""
    rng = random.Random(seed)
    with path.open("w") as file:
        for _ in range(samples):
            integers = [rng.choice(["", "0", str(rng.randrange(-2, 5000))]) for _ in range(13)]
            categories = [rng.choice(["", f"{min(rng.getrandbits(32), rng.getrandbits(32)):08x}",
                                      f"{rng.randrange(20):08x}"]) for _ in range(26)]
            file.write("\t".join([str(rng.randrange(2)), *integers, *categories]) + "\n")
    return path


def movielens(path: Path, samples: int, seed: int = 7) -> Path:
    """Write a ``ratings.csv`` in MovieLens' form."""
    rng = random.Random(seed)
    lines = ["userId,movieId,rating,timestamp"]
    for _ in range(samples):
        lines.append(f"{rng.randrange(1, 611)},{int(rng.paretovariate(0.7)) % 9000 + 1},"
                     f"{rng.randrange(1, 11) / 2},{rng.randrange(8 * 10**8, 15 * 10**8)}")
    path.write_text("\n".join(lines) + "\n")
    return path


SMALL = """dimension = 32
dense = 4
bottom = [32]
top = [16, 1]
interaction = "cat"
"""
"""Layers of a small model file, before its tables."""


def history(path: Path, keys: int) -> Path:
    """Write a model with a history of ``keys`` keys: whole tables leave most lookups at one node.
    """
    path.write_text(f"""
name = "history"
{SMALL}[[tables]]
rows = 2_000_000
bag = [{keys}, {keys}]
[[tables]]
count = 5
rows = 1_500_000
""")
    return path
