"""Table of a comparison on the console."""

from rich.table import Table

__all__ = ["compare_table", "heading"]


def compare_table(result: dict) -> Table:
    """Return the table of a result of :func:`sim.compare.compare.compare`."""
    table = Table(title=heading(result), caption="us: time from one mini-batch to the next; "
                  "bottleneck: busiest resource and the part of us that it is busy, its us; net B: "
                  "network bytes per sample; GB: GPU memory of the fullest GPU")
    for column in ("system", "us", "us alone", "bottleneck", "its us", "net B", "GPU GB"):
        table.add_column(column, justify="left" if column in ("system", "bottleneck") else "right",
                         no_wrap=True)
    for row in result["systems"]:
        if row["why"] is not None:
            continue
        table.add_row(row["system"], f"{row['interval_us']:,.1f}", f"{row['service_us']:,.1f}",
                      f"{row['bottleneck']} {row['utilisation']:.0%}",
                      f"{row['bottleneck_us']:,.1f}",
                      f"{row['network_bytes_per_sample']:,.0f}",
                      f"{row['gpu_memory_bytes'] / 1e9:,.2f}")
    return table


def heading(result: dict) -> str:
    """Return a description of the comparison."""
    gpus = result["gpus"] // result["nodes"]
    return (f"{result['model']}, {result['nodes']} nodes of {result['cluster']}"
            f"{f' with {gpus} GPUs each' * (gpus > 1)}, mini-batches of "
            f"{result['mini_batch']:,} samples, {result['workload']}")
