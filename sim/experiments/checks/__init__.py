"""Comparison of our models with published measurements.

- :mod:`sim.experiments.checks.check`: a value against a measured one; a comparison of several.
- One module per comparison, with its function ``comparison``: :mod:`v100_step` (kernels of a
  training step), :mod:`v100_collectives`, :mod:`v100_kernels` (single kernels),
  :mod:`v100_inference`, :mod:`flattening` (8 to 128 GPUs, two submissions), :mod:`network_drop`
  (two hosts over one NIC).
- :mod:`hugectr_step`, :mod:`hugectr_shards`: an iteration of these submissions, and a GPU's shard
  of the tables.
- :mod:`sim.experiments.checks.every`: all comparisons.
- :mod:`sim.experiments.checks.composed`: the systems of the evaluation on other machines.

The measurements are in :mod:`host.measurements`; no constant of a profile is derived from them.
"""
