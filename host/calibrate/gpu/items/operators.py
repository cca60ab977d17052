"""Host time of a framework's operators, called from Python and from C++."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from host.calibrate.gpu.device import ROUNDS, Device
from host.calibrate.reading import Absent, Reading, reading
from host.model import MODELS

__all__ = ["OPERATORS", "operators", "scripted"]

OPERATORS = ("addmm", "relu", "embedding_bag", "bmm")

_SAMPLES = 128

_SCRIPT = """
def addmm(times: int, bias: Tensor, data: Tensor, weight: Tensor):
    last = data
    for _ in range(times):
        last = torch.addmm(bias, data, weight)
    return last

def relu(times: int, data: Tensor):
    last = data
    for _ in range(times):
        last = torch.relu(data)
    return last

def embedding_bag(times: int, keys: Tensor, table: Tensor, offsets: Tensor):
    last = table
    for _ in range(times):
        last = torch.embedding_bag(table, keys, offsets, False, 0)[0]
    return last

def bmm(times: int, left: Tensor, right: Tensor):
    last = left
    for _ in range(times):
        last = torch.bmm(left, right)
    return last
"""
"""Loops that TorchScript's interpreter runs in C++."""


@contextmanager
def scripted(torch: Any) -> Iterator[Any]:
    """Yield the loops over `OPERATORS` in TorchScript: functions of a count and the arguments.

    Call them in the ``with``: there, TorchScript optimizes nothing. Else it calls only once what
    yields the same each time, and others in place of addmm.
    """
    with torch.jit.optimized_execution(False):
        yield torch.jit.CompilationUnit(_SCRIPT)


def operators(device: Device) -> Iterator[Reading | Absent]:
    """Yield the host's time of each operator, of Kaggle's shape at 128 samples.

    The device is not waited for: the time is that of the call until it returns. From C++ means from
    TorchScript's interpreter, which calls the same operators through the framework's dispatcher
    without Python: what a server in C++ pays.
    """
    torch, model = device.torch, MODELS["kaggle"]
    inputs, outputs = model.top_layers[1]
    bias, data, weight = (device.floats(*shape) for shape in (
        (outputs,), (_SAMPLES, inputs), (inputs, outputs)))
    table = device.floats(device.sizes.of(1 << 20, 16), model.dimension)
    keys = device.indices(_SAMPLES, len(table))
    offsets = torch.arange(0, _SAMPLES, device=device.kind)
    joined = device.floats(_SAMPLES, model.tables + 1, model.dimension)
    turned = joined.transpose(1, 2)
    bag = torch.nn.functional.embedding_bag
    arguments = {"addmm": (bias, data, weight), "relu": (data,),
                 "embedding_bag": (keys, table, offsets), "bmm": (joined, turned)}
    python = {"addmm": torch.addmm, "relu": torch.relu, "bmm": torch.bmm,
              "embedding_bag": lambda *given: bag(*given, mode="sum")}
    for name in OPERATORS:
        given, call = arguments[name], python[name]
        yield reading(f"operators.{name}.python_us", device.queued(lambda: call(*given)),
                      "host time of a call from Python, without waiting")
    try:
        with scripted(torch) as loops:
            for name in OPERATORS:
                yield _looped(device, name, getattr(loops, name), arguments[name])
    except Exception as error:  # TorchScript is deprecated: whatever a later version says instead
        yield Absent("operators.cpp", f"TorchScript cannot be used: {error}")


def _looped(device: Device, name: str, loop: Callable[..., Any], given: tuple) -> Reading:
    loop(ROUNDS, *given)
    times = device.queued(lambda: loop(ROUNDS, *given), 1)
    return reading(f"operators.{name}.cpp_us", [us / ROUNDS for us in times],
                   "host time of a call from TorchScript's interpreter, without waiting")
