"""PyTorch program that starts its own processes: ``spawned.py HOW BACKEND WHAT``.

``HOW``: ``spawn`` or ``fork`` of multiprocessing, or ``torchrun``.
"""

import os
import subprocess
import sys
from tempfile import TemporaryDirectory

from torch import multiprocessing

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from sharded import work


def process(rank: int, backend: str, store: str, what: str) -> None:
    work(backend, 4, 1, what, init_method=f"file://{store}", rank=rank, world_size=2)


if __name__ == "__main__":
    how, backend, what = sys.argv[1:]
    if how == "torchrun":
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sharded.py")
        subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone",
                        "--nproc-per-node=2", script, backend, "4", "1", what], check=True)
    else:
        with TemporaryDirectory() as folder:
            multiprocessing.start_processes(  # pyright: ignore[reportPrivateImportUsage]
                process, (backend, os.path.join(folder, "store"), what), 2, start_method=how)
