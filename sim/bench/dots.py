"""Rows of the dot interaction block: cycles per sample, and the bottleneck."""

from rtl.config import LANES, NicConfig, preset
from rtl.interaction.pairs import pair_count, pair_groups
from sim.bench.rates import dot_interaction_rate
from sim.bench.rows import Job, Progress, Row

__all__ = ["dot_jobs", "dot_limits", "dot_row"]

_SLACK = 1.1
"""Target: cycles per sample divided by the larger of its beats in and out."""


def dot_limits(config: NicConfig, n: int, dimension: int) -> dict[str, int]:
    """Return the cycles for which a sample of ``n`` vectors occupies each part, by part."""
    beats = -(-dimension // LANES)
    return {
        "beats in": n * beats,
        "beats out": beats + -(-pair_count(n) // LANES),
        "groups of dots": beats * pair_groups(n, config.dot_units),
    }


def dot_row(name: str, config: NicConfig, n: int, dimension: int, samples: int = 512,
            engine: str = "verilator") -> Row:
    """Return the cycles per sample of ``n`` vectors, and the bound of the binding limit."""
    rate = dot_interaction_rate(config, n, dimension, samples=samples, engine=engine)
    limits = dot_limits(config, n, dimension)
    bound = max(limits.values())
    binding = " and ".join(part for part, cycles in limits.items() if cycles == bound)
    parts = ", ".join(f"{cycles} {part}" for part, cycles in limits.items())
    return Row(name, rate.cycles / rate.items, "cycles/sample",
               _SLACK * max(limits["beats in"], limits["beats out"]), "<=", bound=bound,
               note=f"{config.name}, {config.dot_units} units: {parts}; {binding} bind; "
                    f"{rate.items:,} samples in {rate.cycles:,} cycles, the latency included")


def dot_jobs() -> list[Job]:
    """Return a job for each size of the presets' models."""
    def job(config: str, n: int, dimension: int) -> Job:
        name = f"dot interaction, {n} x {dimension}"

        def rows(progress: Progress) -> list[Row]:
            progress(f"{config}, compiled once")
            return [dot_row(name, preset(config), n, dimension)]
        return Job("interaction", name, rows)

    return [job("kaggle", 27, 16), job("terabyte", 27, 64), job("kaggle", 22, 16)]
