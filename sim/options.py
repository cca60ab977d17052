"""What a run is asked to do."""

from dataclasses import dataclass

__all__ = ["RunOptions"]


@dataclass(frozen=True)
class RunOptions:
    """Options of :func:`sim.run.run`; the command line has the same names.

    Members
    -------
    config: preset of the NIC. settings: ``field=value`` changes, see :mod:`sim.settings`.
    model: name or TOML file of the DLRM; default by format, else by preset.
    nodes, samples, mini_batch, in_flight: of the run; ``samples`` None means all of a file, or
        1,024 of the generator. warmup: mini-batches left out of the latencies.
    data, format: file of samples; without it the generator makes them.
    placement: ``table`` or ``row``.
    engine, threads, skip: how the RTL runs; ``skip`` leaves out idle cycles.
    network, pcie, gpu: profiles of the timing models.
    mlp: ``fixed`` or ``blas``. seed: of rows, weights and generated samples.
    """

    config: str = "kaggle"
    settings: tuple[str, ...] = ()
    model: str | None = None
    nodes: int = 4
    samples: int | None = None
    mini_batch: int = 128
    in_flight: int = 4
    warmup: int = 0
    data: str | None = None
    format: str | None = None
    placement: str = "table"
    engine: str = "verilator"
    threads: int = 2
    skip: bool = True
    network: str = "ethernet_100g_switch"
    pcie: str = "pcie_gen3x16"
    gpu: str = "gpu_rtx8000"
    mlp: str = "fixed"
    seed: int = 1

    def __post_init__(self) -> None:
        for name, low in (("nodes", 1), ("mini_batch", 1), ("in_flight", 1), ("threads", 1),
                          ("warmup", 0), ("seed", 0)):
            if getattr(self, name) < low:
                raise ValueError(f"{name} must be at least {low}, not {getattr(self, name)!r}")
        if self.samples is not None and self.samples < 1:
            raise ValueError(f"samples must be at least 1, not {self.samples!r}")
        if self.in_flight > 256:
            raise ValueError(f"in_flight must be at most 256, not {self.in_flight!r}")
        if self.format is not None and self.data is None:
            raise ValueError(f"format must go with data, not {self.format!r} alone")
