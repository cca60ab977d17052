"""Report that compares generated samples with measurements of real samples.

``python -m host.data.similarity_report [kaggle|avazu] [SEED]`` prints it. The exit status is 1 if
the savings of greedy selection differ from the measured savings by more than 5 points.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass

from gen.base.numbers import integer
from host.batching.compare import saving
from host.batching.greedy import greedy_order
from host.data.generator import generate
from host.data.similarity import skew, uniques_per_batch
from host.errors import shown
from host.model import MODELS
from host.samples import Samples, concatenate

__all__ = ["TARGETS", "Figures", "compare", "describe", "format_report", "main"]


@dataclass(frozen=True)
class Figures:
    """Figures of a set of samples.

    Members
    -------
    samples: number of samples measured; shares depend on it.
    unique: distinct keys.
    top1, top10: share of accesses to the most used 1 % and 10 % of the keys.
    reuse128, reuse1024: accesses per unique key in mini-batches of 128 and 1,024 in file order.
    greedy: share of unique keys per mini-batch of 128 that greedy selection from a window of 2,048
        saves against file order.
    """

    samples: int
    unique: int
    top1: float
    top10: float
    reuse128: float
    reuse1024: float
    greedy: float


TARGETS = {
    "kaggle": Figures(7200, 34_443, 0.618, 0.783, 2.27, 3.33, 0.269),
    "avazu": Figures(8087, 9_564, 0.828, 0.936, 5.64, 10.37, 0.389),
}
"""Figures of real samples of Criteo and Avazu; fields were measured on disjoint ranges."""


def describe(chunks: Iterable[Samples]) -> Figures:
    """Measure samples; the reuse figures ignore an incomplete last mini-batch."""
    samples = concatenate(chunks)
    shares = skew(samples)

    def reuse(batch: int) -> float:
        full = len(samples) // batch * batch
        whole = samples.slice(0, full) if full else samples
        return len(whole.rows) / max(1, int(uniques_per_batch(whole, batch).sum()))

    return Figures(len(samples), shares.unique, shares.top1, shares.top10, reuse(128), reuse(1024),
                   saving(greedy_order, samples, 128, 2048))


def compare(name: str = "kaggle", seed: int = 0) -> dict:
    """Generate as many samples as the target measurement had, and compare the figures.

    Returns ``{"data", "seed", "rows": [{"name", "generated", "target", "deviation"}, …],
    "greedy_within_5_points"}``; the deviation is relative, except for ``greedy`` (in points).
    """
    if name not in TARGETS:
        raise ValueError(f"name must be one of {', '.join(TARGETS)}, not {shown(name)}")
    target = TARGETS[name]
    got = describe(generate(MODELS[name], target.samples, seed))
    rows = []
    for field in ("unique", "top1", "top10", "reuse128", "reuse1024", "greedy"):
        made, wanted = getattr(got, field), getattr(target, field)
        rows.append({"name": field, "generated": made, "target": wanted,
                     "deviation": made - wanted if field == "greedy" else made / wanted - 1})
    return {"data": name, "seed": seed, "rows": rows,
            "greedy_within_5_points": abs(got.greedy - target.greedy) <= 0.05}


def format_report(result: dict) -> str:
    """Return the result of `compare` as text, one line per figure."""
    lines = [f"generated samples like {result['data']} (seed {result['seed']}):"]
    for row in result["rows"]:
        unit = " points" if row["name"] == "greedy" else " %"
        lines.append(f"  {row['name']:10} {row['generated']:10.5g}  measured on real samples "
                     f"{row['target']:8.5g}  {100 * row['deviation']:+.1f}{unit}")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Print the requested reports and return the exit status."""
    try:
        seed = integer(arguments[1]) if len(arguments) > 1 else 0
        results = [compare(name, seed) for name in arguments[:1] or TARGETS]
    except ValueError as error:
        print(f"similarity_report: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("similarity_report: stopped by SIGINT", file=sys.stderr)
        return 130
    for result in results:
        print(format_report(result))
    return 0 if all(result["greedy_within_5_points"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
