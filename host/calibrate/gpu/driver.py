"""The CUDA driver API: kernels compiled at run time, streams, graphs, and host times."""

import ctypes
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from embernic_extras import ExtraError, require
from host.calibrate.gpu.compile import compile_kernel, supported_targets, target_of
from host.calibrate.gpu.native import GRAPH, LAUNCH, WAIT, Action, Loops
from host.calibrate.reading import Missing

__all__ = ["Driver", "Word"]


class Word(ctypes.c_uint32):
    """A 32-bit argument; other integers are passed as 64 bits."""


class Driver:
    """Calls of the CUDA driver in PyTorch's context.

    Handles of streams, kernels and graphs are integers. PyTorch owns the memory; page-locked host
    memory has the same address for host and GPU. Requires the package ``cuda-bindings`` and NVRTC,
    which PyTorch for CUDA includes since 2.10, and a C compiler for the host's loops.

    capability: compute capability of the GPU; 90 means 9.0.

    Raises :class:`host.calibrate.reading.Missing` if a requirement is absent, and for driver
    errors.
    """

    def __init__(self, capability: int):
        try:
            self._cuda = require("cuda.bindings.driver", "the CUDA driver")
            self._nvrtc = require("cuda.bindings.nvrtc", "the CUDA driver")
        except ExtraError as error:
            raise Missing(str(error)) from None
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise Missing(f"there is no CUDA driver: {error}") from None
        self._call("cuInit", 0)
        self.loops = Loops()
        self._capability = capability
        self._kept: list[Any] = []  # arguments and code that the driver may still read
        self.kernel = cache(self._kernel)
        self._module = cache(self._load)

    def _call(self, function: str, *arguments: Any) -> Any:
        try:
            status, *result = getattr(self._cuda, function)(*arguments)
        except (RuntimeError, AttributeError, TypeError) as error:
            raise Missing(f"{function} cannot be called: {' '.join(str(error).split())}") from None
        if int(status):
            raise Missing(f"{function} failed: {status.name}")
        return result[0] if len(result) == 1 else result

    def _address(self, function: str) -> int:
        return ctypes.cast(getattr(self._library, function), ctypes.c_void_p).value or 0

    def _kernel(self, source: str, name: str) -> int:
        """Return the kernel ``name`` of ``host/calibrate/kernels/source.cu``."""
        function = self._call("cuModuleGetFunction", self._module(source), name.encode())
        with suppress(Missing):  # load now: the first launch may be captured in a graph
            self._call("cuFuncLoad", function)
        return int(function)

    def _load(self, source: str) -> Any:
        target = target_of(self._capability, supported_targets(self._nvrtc))
        code = compile_kernel(self._nvrtc, source, target)
        self._kept.append(ctypes.create_string_buffer(code, len(code) + 1))
        return self._call("cuModuleLoadData", ctypes.addressof(self._kept[-1]))

    def stream(self) -> int:
        """Create a stream that does not wait for the default stream."""
        flags = self._cuda.CUstream_flags.CU_STREAM_NON_BLOCKING
        return int(self._call("cuStreamCreate", int(flags)))

    def launch(self, stream: int, source: str, name: str, grid: int, block: int,
               *arguments: int | ctypes._SimpleCData) -> Action:
        """Return the launch of a kernel with these arguments: addresses, integers, `Word`."""
        values = [a if isinstance(a, ctypes._SimpleCData) else ctypes.c_uint64(a)
                  for a in arguments]
        array = (ctypes.c_void_p * max(1, len(values)))(*map(ctypes.addressof, values))
        self._kept += [values, array]
        return Action(LAUNCH, grid, block, 0, self._address("cuLaunchKernel"),
                      self.kernel(source, name), stream, ctypes.addressof(array))

    def wait(self, stream: int) -> Action:
        """Return the host's wait for all work of a stream."""
        return Action(WAIT, 0, 0, 0, self._address("cuStreamSynchronize"), None, stream)

    def graph(self, stream: int, actions: Sequence[Action]) -> Action:
        """Return the launch of a graph of ``actions`` in sequence, in ``stream``."""
        return self.launched(self._captured(stream, actions), stream)

    def _captured(self, stream: int, actions: Sequence[Action]) -> Any:
        mode = self._cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        self._call("cuStreamBeginCapture", stream, mode)
        try:
            for action in actions:
                action.stream = stream
                self.loops.row([action])
        finally:
            captured = self._call("cuStreamEndCapture", stream)
        return captured

    def launched(self, graph: Any, stream: int) -> Action:
        """Return the launch, in ``stream``, of a graph captured by the driver or by PyTorch."""
        whole = self._call("cuGraphInstantiate", graph, 0)
        self._call("cuGraphUpload", whole, stream)
        self._kept.append(whole)
        return Action(GRAPH, 0, 0, 0, self._address("cuGraphLaunch"), int(whole), stream)

    def branches(self, stream: int,
                 branches: Sequence[Sequence[Action | tuple[int, int]]]) -> Action:
        """Return the launch, in ``stream``, of a graph of parallel ``branches``.

        A branch is a sequence of actions. A pair (address, value) is a node that waits, without a
        kernel, until the 32-bit word at the address equals the value.
        """
        whole = self._call("cuGraphCreate", 0)
        for branch in branches:
            before: list[Any] = []
            for step in branch:
                before = [self._waiting(whole, before, *step) if isinstance(step, tuple) else
                          self._call("cuGraphAddChildGraphNode", whole, before or None,
                                     len(before), self._captured(stream, [step]))]
        return self.launched(whole, stream)

    def _waiting(self, graph: Any, before: list[Any], address: int, value: int) -> Any:
        """Add a node that waits for a word to ``graph``, after the nodes ``before``."""
        wait = self._cuda.CUstreamBatchMemOpParams()
        wait.operation = self._cuda.CUstreamBatchMemOpType.CU_STREAM_MEM_OP_WAIT_VALUE_32
        wait.waitValue.operation = wait.operation
        wait.waitValue.address = self._cuda.CUdeviceptr(address)
        wait.waitValue.value = self._cuda.cuuint32_t(value)
        wait.waitValue.flags = 1  # equal
        node = self._cuda.CUDA_BATCH_MEM_OP_NODE_PARAMS()
        node.ctx = self._call("cuCtxGetCurrent")
        node.count, node.paramArray, node.flags = 1, [wait], 0
        self._kept.append((wait, node))
        return self._call("cuGraphAddBatchMemOpNode", graph, before or None, len(before), node)

    def perform(self, action: Action) -> None:
        """Run an action without waiting for the GPU."""
        self.loops.row([action])

    def synchronize(self, stream: int) -> None:
        """Wait for all work of a stream."""
        self._call("cuStreamSynchronize", stream)

    def series(self, action: Action, count: int, times: int) -> list[float]:
        """Return the host's microseconds per ``action`` in each of ``times`` series of ``count``.

        A series starts on an idle GPU and does not wait for the GPU.
        """
        found = []
        for _ in range(times):
            self.synchronize(action.stream)
            found.append(self.loops.row([action], count))
        self.synchronize(action.stream)
        return found

    def inside(self, where: Callable[[], int], source: str, name: str, grid: int, block: int,
               *arguments: int | ctypes._SimpleCData) -> Callable[[], None]:
        """Return a function that launches a kernel in the stream that ``where()`` returns at that
        time.
        """
        action = self.launch(0, source, name, grid, block, *arguments)

        def act() -> None:
            action.stream = where()
            self.loops.row([action])

        return act
