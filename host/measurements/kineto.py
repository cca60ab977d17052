"""Kernels and collectives of a training step, counted from PyTorch's traces.

A Kineto trace (Chrome's trace format, written by ``torch.profiler``) contains, per rank, operator
calls with input shapes, CUDA runtime calls, and kernels with their times. An execution trace
(``torch.profiler.ExecutionTraceObserver``) also contains the shapes of tensor lists, such as the
inputs of ``aten::cat``, and the sizes of collectives.

A kernel belongs to the innermost operator during which it was launched. Kernels without a launch in
the trace belong to the previous step and are omitted.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from host.errors import InputError
from host.reading import read_whole

__all__ = ["Collective", "Kernel", "collectives", "kernels", "read_traces"]

Event = Mapping[str, Any]

_MOST = 1 << 30
"""Maximum bytes of a trace; a step of eight GPUs has about ten million."""

_ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
_LOOKUP = "split_embedding_codegen_lookup"
_LOOKUP_BACKWARD = "CppNode<SplitLookupFunction_"
_DENSE = ("dense_embedding_codegen_lookup", "CppNode<SplitLookupFunction_Dense")


@dataclass(frozen=True)
class Kernel:
    """A kernel, a copy or a memset on a GPU.

    Members
    -------
    operator: operator that launched it.
    name: name of the kernel, without parameters.
    shapes: shapes of the operator's tensors, such as ``16x512 512x256``; of its result for a list.
    rows: rows of embedding tables that it looks up or updates; 0 for other kernels.
    us: duration.
    """

    operator: str
    name: str
    shapes: str
    rows: int
    us: float


@dataclass(frozen=True)
class Collective:
    """A collective operation.

    Members
    -------
    sent: bytes to each rank; a single number if all are equal; for an all-reduce, its bytes.
    us: duration of its kernel, including waits for other ranks.
    """

    kind: str
    sent: tuple[int, ...]
    us: float


def read_traces(folder: str | Path) -> dict[Path, dict]:
    """Return the JSON files of ``folder`` and the folders in it by path, ordered by name.

    Raises ``ValueError`` without any, or if one is not JSON or has more than 2^30 bytes.
    """
    paths = sorted(Path(folder).rglob("*.json"))
    if not paths:
        raise ValueError(f"folder must contain traces (*.json), not {str(folder)!r}")
    found = {}
    for path in paths:
        try:
            found[path] = json.loads(read_whole(path, _MOST))
        except InputError:
            raise
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} is not JSON: {error}") from None
    return found


def kernels(trace: Mapping, execution: Mapping | None = None) -> list[Kernel]:
    """Return the kernels of a rank's own operators in order, without collectives.

    execution: execution trace of the same rank, for the results of ``aten::cat``.
    """
    events = trace["traceEvents"]
    operators = sorted((e for e in events if e.get("cat") == "cpu_op"), key=lambda e: e["ts"])
    launches = {e["args"]["correlation"]: e for e in events
                if e.get("cat") == "cuda_runtime" and "correlation" in e["args"]}
    joined = dict(zip((id(e) for e in operators if e["name"] == "aten::cat"),
                      _joined(execution)))
    rows = {dense: _rows_looked_up(operators, dense) for dense in (False, True)}
    found = []
    for event in _on_gpu(events):
        launch = launches.get(event["args"]["correlation"])
        if launch is None or "nccl" in event["name"].lower():
            continue
        operator = _innermost(operators, launch)
        called = operator["name"] if operator else "none"
        shapes = joined.get(id(operator)) or _shapes(operator)
        looked_up = any(word in called for word in (_LOOKUP, _LOOKUP_BACKWARD, _DENSE[0]))
        found.append(Kernel(_without_addresses(called), _short(event["name"]), shapes,
                            rows[any(word in called for word in _DENSE)] if looked_up else 0,
                            float(event["dur"])))
    return found


def collectives(trace: Mapping, execution: Mapping) -> list[Collective]:
    """Return a rank's collectives in order, with their sizes from its execution trace.

    Raises ``ValueError`` if the traces contain different numbers of collectives.
    """
    ran = [e for e in _on_gpu(trace["traceEvents"]) if "nccl" in e["name"].lower()]
    sizes = [(kind, sent) for node in execution["nodes"]
             if node["name"] == "record_param_comms" and (found := _sent(node["inputs"]))
             for kind, sent in (found,)]
    if len(ran) != len(sizes):
        raise ValueError(f"execution must have the {len(ran)} collectives of the trace, "
                         f"not {len(sizes)}")
    return [Collective(kind, sent, float(e["dur"])) for e, (kind, sent) in zip(ran, sizes)]


def _on_gpu(events: Sequence[Event]) -> list[Event]:
    return sorted((e for e in events if e.get("cat") in _ON_GPU), key=lambda e: e["ts"])


def _innermost(operators: Sequence[Event], launch: Event) -> Event | None:
    """Return the shortest operator of the launching thread that contains the launch."""
    around = [e for e in operators if e["tid"] == launch["tid"] and e["ts"] <= launch["ts"]
              and e["ts"] + e["dur"] >= launch["ts"] + launch["dur"]]
    return min(around, key=lambda e: (e["dur"], -e["ts"]), default=None)


def _shapes(operator: Event | None) -> str:
    """Return the shapes of an operator's tensors; numbers have none."""
    dims = operator["args"].get("Input Dims", []) if operator else []
    return " ".join("x".join(map(str, shape)) for shape in dims if shape)


def _joined(execution: Mapping | None) -> list[str]:
    """Return the result shapes of each ``aten::cat``, in order."""
    nodes = sorted((execution or {"nodes": []})["nodes"], key=lambda node: node["id"])
    return ["x".join(map(str, node["output_shapes"][0])) for node in nodes
            if node["name"] == "aten::cat"]


def _rows_looked_up(operators: Sequence[Event], dense: bool) -> int:
    """Return the number of indices of a lookup, from the tensor before its offsets."""
    for event in operators:
        if (_DENSE[0] if dense else _LOOKUP) in event["name"]:
            dims = event["args"]["Input Dims"]
            # Indices are input 8 of the dense operator, and input 12 of the split operator.
            return prod(dims[7 if dense else 11])
    return 0


def _sent(inputs: Sequence) -> tuple[str, tuple[int, ...]] | None:
    """Return the kind of a collective and its bytes; None for a wait."""
    kind = next(value for value in inputs if isinstance(value, str))
    if kind == "wait":
        return None
    tensor = inputs[0][0] if isinstance(inputs[0][0], list) else inputs[0]
    values, size = tensor[3], tensor[4]
    if kind == "all_to_allv":
        return "all_to_all", tuple(size * count for count in inputs[-2])
    return kind.replace("allreduce", "all_reduce"), (size * values,)


def _short(name: str) -> str:
    """Return a kernel's name without its result, its name space and its parameters."""
    if name.startswith(("Memcpy", "Memset")):
        return name.split(" (")[0]
    name = name.removeprefix("void ").replace("(anonymous namespace)::", "")
    return re.split(r"[<(]", name)[0].split("::")[-1]


def _without_addresses(name: str) -> str:
    return name.replace("torch::autograd::", "")
