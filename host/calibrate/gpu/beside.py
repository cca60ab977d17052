"""How kernels of several mini-batches side by side disturb each other, from whole steps.

Each further mini-batch in flight makes a mini-batch longer by about the same time. This time is the
GPU's time that a mini-batch takes from others. Two sizes of mini-batches separate a part that grows
with the work of the kernels from a part per kernel.
"""

from collections.abc import Mapping
from dataclasses import replace

from host.calibrate.gpu.items.en import CASES, IN_FLIGHT
from host.calibrate.reading import Book
from host.devices.dense_work import mlp
from host.devices.embedding_work import expanded_interaction, gather
from host.devices.gpu_time import GpuTime
from host.devices.operation import Operation
from host.devices.software import SoftwareProfile
from host.model import MODELS
from host.timing.gpu import GpuProfile

__all__ = ["half", "taken_us", "with_beside"]

_LEVEL = 2
"""Kernel fusion of the measured halves."""
_LEAST = 0.05
"""Least fraction, in case of noise."""


def half(name: str, samples: int) -> tuple[Operation, ...]:
    """Return the kernels of ``bl-tuned``'s half of a mini-batch, see
    :class:`host.calibrate.gpu.halves.Half`.
    """
    model = MODELS[name]
    keys = samples * model.tables
    return (gather(keys, keys, model.dimension, fused=True),
            *mlp(samples, model.bottom_layers, _LEVEL),
            *expanded_interaction(samples, model, keys, keys, 2 * keys, _LEVEL),
            *mlp(samples, model.top_layers, _LEVEL))


def taken_us(alone_us: float, interval_us: float, rest_us: float, in_flight: int) -> float:
    """Return the GPU's time that a mini-batch takes from others; inverse of
    :func:`host.systems.schedule.among_us`.

    alone_us: length of a mini-batch alone, of which kernels do not run for ``rest_us``.
    interval_us: time from one mini-batch to the next with ``in_flight`` mini-batches in flight.
    """
    length = in_flight * interval_us
    return max(0.0, length - alone_us) / (in_flight - 1) * length / (length - rest_us)


def with_beside(gpu: GpuProfile, software: SoftwareProfile, book: Book) -> GpuProfile:
    """Return ``gpu`` with ``beside_fraction`` and ``beside_us`` from the readings of the item
    ``en``; unchanged if a reading is missing.

    gpu: with all other constants. software: of the graphs.
    """
    names = {(name, samples): {what: f"en.{name}.{samples}.tuned.1.{what}_us" for what in (
        "alone", "interval", "call")} for name, samples, _ in CASES}
    if any(name not in book for each in names.values() for name in each.values()):
        return gpu
    plain = GpuTime(replace(gpu, beside_fraction=1.0, beside_us=0.0), software)
    small, large = (_point(plain, *case, {what: book[name] for what, name in each.items()})
                    for case, each in names.items())
    fraction = min(1.0, max(_LEAST, (large[1] - small[1]) / max(1e-9, large[2] - small[2])))
    us = max(0.0, (small[2] - small[1] / fraction) / small[0])
    said = ", ".join(name for each in names.values() for name in each.values())
    text = (f"[M] {said}, median of {book.readings[names[CASES[0][:2]]['interval']].count}: time "
            f"that each of {IN_FLIGHT} mini-batches in flight adds to the others, ")
    return replace(gpu, beside_fraction=fraction, beside_us=us, source=gpu.source | {
        "beside_fraction": f"{text}by its kernels' time on the multiprocessors that they fill",
        "beside_us": f"{text}per kernel, without the part of beside_fraction"})


def _point(gpu: GpuTime, name: str, samples: int,
           found: Mapping[str, float]) -> tuple[int, float, float]:
    """Return the kernels of a case, their work by the model, and the measured time that they take.
    """
    work = half(name, samples)
    return (sum(each.kernels for each in work), gpu.run(*work).busy["gpu"], taken_us(
        found["alone"], found["interval"], found["call"] + gpu.gpu.launch_us, IN_FLIGHT))
