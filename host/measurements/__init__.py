"""Measurements that others have published: what constants may come from, what only checks them.

- ``sources.toml``: every source with its date, and on which side it stands; read by
  :mod:`host.measurements.sources`. It was split before any model was compared with it.
- ``v100_step_kernels.csv``, ``v100_step_collectives.csv``: the kernels and collectives of one
  training step on eight GPUs, counted from a trace by :mod:`host.measurements.kineto`
  (``python -m host.measurements trace``) and read by :mod:`host.measurements.step`.
- ``kernel_rows.toml``, ``inference.toml``, ``flattening.toml``, ``flattening_v3_1.toml``,
  ``network_drop.toml``: figures of tables and logs, read by :mod:`host.measurements.published`.

- ``gpu_h100_readings.csv``: what :mod:`host.calibrate` measured on an H100: constants of
  ``gpu_h100``, ``software_eager_h100`` and ``software_tuned_h100``, and checks; read by
  :mod:`host.measurements.readings`.

Data only: what the models say of them is in :mod:`sim.experiments.checks`.
"""
