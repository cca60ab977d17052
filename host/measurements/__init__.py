"""Published measurements: sources of constants, and data that only checks models.

- ``sources.toml``: each source with its date and its side of the split between constants and
  checks; read by :mod:`host.measurements.sources`.
- ``v100_step_kernels.csv``, ``v100_step_collectives.csv``: kernels and collectives of a training
  step on eight GPUs, counted from a trace by :mod:`host.measurements.kineto` (``python -m
  host.measurements trace``) and read by :mod:`host.measurements.step`.
- ``kernel_rows.toml``, ``inference.toml``, ``flattening.toml``, ``flattening_v3_1.toml``,
  ``network_drop.toml``: figures from tables and logs, read by :mod:`host.measurements.published`.
- ``gpu_h100_readings.csv``: readings of :mod:`host.calibrate` on an H100, used for the constants of
  ``gpu_h100``, ``software_eager_h100`` and ``software_tuned_h100``, and for checks; read by
  :mod:`host.measurements.readings`.

:mod:`sim.experiments.checks` compares the models with these data.
"""
