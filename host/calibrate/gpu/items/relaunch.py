"""Graphs that a kernel on the GPU launches, for a word that the host stores."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory

from host.calibrate.gpu.device import Device
from host.calibrate.reading import Missing, Reading, reading

__all__ = ["NODES", "build", "relaunch", "times"]

NODES = (1, 14, 40)
_WARM = 20


def relaunch(device: Device) -> Iterator[Reading]:
    """Yield the time from the host's store until it sees the first and last store of a graph.

    A kernel that polls launches the graph; beside it: the host's launch, ``graph.14.first_us``.
    Needs CUDA's compiler, which links device code with the runtime that launches graphs there.
    """
    if not device.cuda:
        raise Missing("it needs a CUDA device")
    major, minor = device.torch.cuda.get_device_capability()
    with TemporaryDirectory() as folder:
        program = build(Path(folder), f"sm_{major}{minor}")
        for nodes in NODES:
            found = times([str(program), str(nodes), str(_WARM + 64 * device.repeats)])
            about = f"of a graph of {nodes} kernels that the GPU launches"
            yield reading(f"relaunch.{nodes}.first_us", [first for first, _ in found[_WARM:]],
                          f"from the host's store until it sees the first store {about}")
            yield reading(f"relaunch.{nodes}.last_us", [last for _, last in found[_WARM:]],
                          f"from the host's store until it sees the last store {about}")


def build(folder: Path, target: str) -> Path:
    """Compile ``relaunch.cu`` for ``target`` to a program in ``folder``; return its path.

    Raises `Missing` without CUDA's compiler, ``nvcc``, on the path or under ``CUDA_HOME``.
    """
    home = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin" / "nvcc"
    compiler = shutil.which("nvcc") or (str(home) if home.exists() else None)
    if compiler is None:
        raise Missing("CUDA's compiler nvcc was not found, on the path or under CUDA_HOME")
    program = folder / "relaunch"
    with as_file(files("host.calibrate")) as sources:
        _run([compiler, "-O2", "-std=c++17", "-rdc=true", f"-arch={target}", "-o", str(program),
              str(sources / "gpu" / "relaunch.cu"), "-lcudadevrt"], 180)
    return program


def times(command: Sequence[str]) -> list[tuple[float, float]]:
    """Return what the program prints for each step: until the first, and the last store is seen.

    Raises `Missing` where it fails.
    """
    lines = _run(command, 60).splitlines()
    found = [tuple(map(float, line.split())) for line in lines]
    if not found or any(len(each) != 2 for each in found):
        raise Missing("relaunch.cu did not print two times for each step")
    return [(first, last) for first, last in found]


def _run(command: Sequence[str], seconds: float) -> str:
    name = Path(command[0]).name
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing(f"{name} does not run: {error}") from None
    if done.returncode:
        said = " ".join(done.stderr.split())[-300:] or f"exit status {done.returncode}"
        raise Missing(f"{name} failed: {said}")
    return done.stdout
