"""Our models against what others measured: ours, theirs, error, and why it is what it is.

- :mod:`sim.experiments.checks.check`: one figure against another; several as a comparison.
- A file for each comparison, with its function ``comparison``: :mod:`v100_step` (kernels of a
  training step), :mod:`v100_collectives`, :mod:`v100_kernels` (single kernels),
  :mod:`v100_inference`, :mod:`flattening` (8 to 128 GPUs, two submissions), :mod:`network_drop`
  (two hosts over one NIC).
- :mod:`hugectr_step`, :mod:`hugectr_shards`: an iteration of these submissions, and what a GPU has
  of the tables.
- :mod:`sim.experiments.checks.every`: all of them.
- :mod:`sim.experiments.checks.composed`: the systems of the evaluation on other people's machines.

What was measured lies in :mod:`host.measurements`; no constant of a profile comes from there.
"""
