"""Figure 14: speedup of inference over the number of nodes."""

from sim.experiments.figures.plots.lines import Lines
from sim.experiments.figures.plots.metric import Metric
from sim.experiments.figures.plots.plot import Plot
from sim.experiments.figures.plots.series import CPU_BASE, INFERENCE_SYSTEMS, over_nodes

__all__ = ["EXHIBIT"]

EXHIBIT = Plot(
    "fig14", "Inference: speedup over nodes", over_nodes(INFERENCE_SYSTEMS, "inference"),
    (Metric("interval_speedup_vs_cpu-mpi_2_nodes", "interval_us", "x", CPU_BASE),
     Metric("service_speedup_vs_cpu-mpi_2_nodes", "service_us", "x", CPU_BASE),
     Metric("interval_us", "interval_us", "us"), Metric("service_us", "service_us", "us")),
    Lines("speedup over 2-node CPU-MPI", "nodes"))
