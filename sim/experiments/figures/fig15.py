"""Figure 15: speedup of training over the number of nodes."""

from sim.experiments.figures.plots.lines import Lines
from sim.experiments.figures.plots.metric import Metric
from sim.experiments.figures.plots.plot import Plot
from sim.experiments.figures.plots.series import CPU_BASE, TRAINING_SYSTEMS, over_nodes

__all__ = ["EXHIBIT"]

EXHIBIT = Plot(
    "fig15", "Training: speedup over nodes", over_nodes(TRAINING_SYSTEMS, "training"),
    (Metric("throughput_speedup_vs_cpu-mpi_2_nodes", "samples_per_second", "x", CPU_BASE),
     Metric("samples_per_second", "samples_per_second", "samples/s")),
    Lines("speedup over 2-node CPU-MPI", "nodes"))
