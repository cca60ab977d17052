"""Profiles of a GPU, its link and its software, derived from readings.

A field is filled from the first available reading that `_SOURCES` lists for it, or from the reading
whose name equals the field's name with ``_`` for each dot (``launch.call_us`` fills
``launch_call_us``). Other fields keep value and source of the shipped profiles.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from math import log2
from statistics import median
from typing import Any, TypeVar

from host.calibrate.gpu.items.en import HALVES
from host.calibrate.gpu.items.rates import OPERATORS
from host.calibrate.reading import Book
from host.devices.software import SoftwareProfile
from host.timing.gpu import GpuProfile
from host.timing.pcie import PcieProfile
from host.toml.profile import load_profile
from host.toml.provenance import Constant, constants

__all__ = ["Profiles", "derive_profiles"]

T = TypeVar("T")


@dataclass(frozen=True)
class Profiles:
    """The profiles of a machine: its GPU, PCIe link, and eager and tuned software."""

    gpu: GpuProfile
    pcie: PcieProfile
    eager: SoftwareProfile
    tuned: SoftwareProfile

    @property
    def all(self) -> tuple[Any, ...]:
        """All profiles, in order."""
        return self.gpu, self.pcie, self.eager, self.tuned


@dataclass(frozen=True)
class _Source:
    """Derivation of a field from readings.

    Members: names of the readings, all required; the function of their values (default: the first
    value); status and text of the source.
    """

    names: tuple[str, ...]
    compute: Callable[..., float] = lambda *values: values[0]
    text: str = ""
    status: str = "M"


_LAUNCHED = ("kaggle.32", "kaggle.32.tf32")
"""Cases of the item ``en`` that give the constant. Terabyte's launches take up to twice as long."""


def _one(name: str, **how: Any) -> _Source:
    return _Source((name,), **how)


def _middle(*values: float) -> float:
    return median(values)


_ROWS = ("gather.65536x64B.kernel.cold_us", "gather.65536x256B.kernel.cold_us")


def _rows_us(us: float, size: int, stream_gb_s: float) -> float:
    """Return the part of a gather of 65,536 rows of ``size`` bytes that reads rows, without
    sequential bytes: indices, and vectors that are written.
    """
    return max(us - 65536 * (size + 8) / (stream_gb_s * 1e3), 0.05 * us)


_SOURCES: dict[type, dict[str, tuple[_Source, ...]]] = {
    GpuProfile: {
        "multiprocessors": (_one("device.multiprocessors"),),
        "launch_us": (
            _Source(("launch.first_idle_us", "launch.single_us", "resident.1.round_trip_us"),
                    lambda seen, call, trip: max(0.1, seen - call - trip / 2),
                    "from a launch to an idle GPU until its first store is seen, less the call and "
                    "half of a round trip to a polling kernel; at least 0.1"),
            _one("rates.launch_us")),
        "memory_bandwidth_gb_s": (_one("rates.stream_gb_s"),),
        "float32_tflops": (_one("rates.product_tflops"),),
        "kernel_us": (_one("rates.node_us"),),
        "read_us": (_Source(
            ("gather.64x64B.kernel.cold_us", "rates.node_us"),
            lambda cold, node: max(0.0, (cold - node) / 2), "half of the additional time of a "
            "kernel that reads an index and a row, not read just before, over a kernel without "
            "work"),),
        "access_bytes": (_Source(
            (*_ROWS, "rates.node_us", "rates.stream_gb_s"),
            lambda short, long, node, stream: 2 ** round(log2(
                256 * _rows_us(short - node, 64, stream) / _rows_us(long - node, 256, stream))),
            "power of two next to the bytes that a row of 64 B moves at the rate of rows of 256 B"),
            ),
        "gather_fraction": (
            _Source((_ROWS[1], "rates.node_us", "rates.stream_gb_s"),
                    lambda us, node, stream: min(1.0, 65536 * 256 / stream / 1e3
                                                 / _rows_us(us - node, 256, stream)),
                    "65,536 rows of 256 B at random by a kernel of the project, without the time "
                    "of a kernel and of sequential reads and writes, relative to the rate of "
                    "streams; at most 1"),
            _Source(("rates.gather_gb_s", "rates.stream_gb_s"),
                    lambda gather, stream: min(1.0, gather / stream),
                    "rows of 64 B at random, relative to the rate of streams")),
        "stream_fraction": (_one("rates.stream_gb_s", compute=lambda _: 1.0, status="D",
                                 text="1: the memory rate was measured on streams"),),
        "gemm_fraction": (_one("rates.product_tflops", compute=lambda _: 1.0, status="D",
                               text="1: the rate was measured on large products"),),
        "word_us": (_Source(
            ("held.1.in_order.first_us", "release.poll_us", "resident.4.round_trip_us",
             "resident.1.round_trip_us", "resident.1.1_rows_us"),
            lambda held, polled, four, one, row: max(0.1, held - polled)
            + max(0.1, four + row - 2 * one),
            "additional time of a waiting node compared with a polling kernel, plus poll_us"),),
        "flush_reads": (_one("device.capability", compute=lambda found: int(found < 9),
                             text="0 from compute capability 9.0 on: writes become visible in "
                             "order (NCCL)", status="D"),),
        "bar_gib": (_one("device.capability", compute=lambda found: 128.0 if found >= 9 else 0.25,
                         text="128 GiB from compute capability 9.0 on, as of an H100 (fastfetch, "
                         "issue 1658); 256 MiB before, the least", status="D"),),
        "poll_us": (_Source(
            ("resident.4.round_trip_us", "resident.1.round_trip_us", "resident.1.1_rows_us"),
            lambda four, one, row: max(0.1, four + row - 2 * one),
            "additional time of blocks that poll a flag in GPU memory instead of host memory, "
            "plus the additional time of a list of one row; at least 0.1"),)},
    PcieProfile: {"bandwidth_gb_s": (_one("rates.to_device_gb_s"),)},
    SoftwareProfile: {
        "operator_us": (
            _Source(tuple(f"operators.{name}.python_us" for name in OPERATORS), _middle,
                    f"median of {', '.join(OPERATORS)}, called from Python"),
            _one("rates.call_us")),
        "copy_us": (_one("rates.copy_us"),),
        "synchronize_us": (
            _Source(tuple(f"en.{_LAUNCHED[1]}.{half}.1.{what}_us" for half in HALVES
                          for what in ("interval", "call")),
                    lambda en, en_call, tuned, tuned_call: max(
                        0.0, median((en - en_call, tuned - tuned_call))),
                    "host time of polling a done word in host memory: what a mini-batch takes a "
                    "thread that launches graphs, less the launch"),
            _one("rates.wait_us")),
        "graph_us": (
            _Source(tuple(f"en.{case}.{half}.1.call_us" for case in _LAUNCHED for half in HALVES),
                    _middle, "host time of the launch of a graph of a mini-batch's whole work on "
                    "the GPU; a graph of several takes as long as a graph each"),
            _one("graph.14.call_us"), _one("graph.14.python_us")),
        "launch_call_us": (_one("launch.call_us"),)},
}


def derive_profiles(name: str, book: Book) -> Profiles:
    """Return the profiles derived from the readings in ``book``.

    name: name of the GPU's profile, beginning with ``gpu_``; the other profiles are named after it.
    """

    def of(kind: type[T], shipped: str, prefix: str) -> T:
        return _filled(load_profile(shipped, kind), name.replace("gpu_", prefix, 1), book)

    return Profiles(of(GpuProfile, "gpu_rtx8000", "gpu_"),
                    of(PcieProfile, "pcie_gen3x16", "pcie_"),
                    of(SoftwareProfile, "software_eager", "software_eager_"),
                    of(SoftwareProfile, "software_tuned", "software_tuned_"))


def _filled(base: T, name: str, book: Book) -> T:
    """Return ``base`` with the fields for which there are readings."""
    kind = type(base)
    aliases = {each.replace(".", "_"): each for each in book.readings}
    shipped = {constant.name: constant for constant in constants(base)}
    values: dict[str, Any] = {"name": name}
    source: dict[str, str] = {}
    for field in fields(kind):  # type: ignore[arg-type]
        known = shipped.get(field.name)
        if known is None:  # no number
            continue
        options: Sequence[_Source] = _SOURCES.get(kind, {}).get(field.name, ())
        if field.name in aliases:
            options = (*options, _one(aliases[field.name]))
        for option in options:
            if _without_graphs(base, field.name, option) or any(
                    name not in book for name in option.names):
                continue
            value = option.compute(*(book[each] for each in option.names))
            values[field.name] = round(value) if isinstance(known.value, int) else value
            source[field.name] = _said(option, book)
            break
        else:
            source[field.name] = _kept(known)
    return replace(base, **values, source=source)  # type: ignore[type-var]


def _without_graphs(base: Any, field: str, option: _Source) -> bool:
    """Return whether ``option`` is about graphs and the software has no graphs."""
    return (isinstance(base, SoftwareProfile) and not base.graphs
            and (field == "graph_us" or option.names[0].startswith("en.")))


def _said(option: _Source, book: Book) -> str:
    first = book.readings[option.names[0]]
    if option.status != "M":
        return f"[{option.status}] {option.text}"
    text = option.text or first.about
    return f"[M] {', '.join(option.names)}, median of {first.count}: {text}"


def _kept(constant: Constant) -> str:
    note = "" if constant.status == "C" else "; not measured"
    return f"[{constant.status}] {constant.source}{note}"
