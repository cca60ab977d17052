"""The processes of a PyTorch program: how one of them knows the others."""

import os
from datetime import timedelta
from traceback import format_exception
from typing import Any

from torch import distributed

from sim.torch.hub import Failure, Hub, Link
from sim.torch.options import TorchOptions
from sim.torch.process_group import EmberNicGroup
from sim.torch.seen import Seen

__all__ = ["ProcessError", "Processes", "is_first"]

_PATIENCE = 0.5
"""Seconds in which it shows whether a failure is only what another's has led to."""
_programs = [0]


def is_first() -> bool:
    """Return whether this is the first of the processes that ``torchrun`` began, or the only one.
    """
    return os.environ.get("RANK", "0") == "0"


class ProcessError(Exception):
    """A process of the program failed, and the user was told why. ``status``: to exit with."""

    def __init__(self, status: int):
        super().__init__(f"a process of the program failed, with exit status {status}")
        self.status = status


class Processes:
    """The processes of one program, as one of them sees them.

    Processes that ``torchrun`` began know each other at once, by its store; others when they make
    the process group ``embernic``. The one with rank 0 has the hub, where all say what they have
    seen.

    Members: ``options`` of the program, with a node for each process once they know each other.
    """

    def __init__(self, options: TorchOptions):
        self.options = options
        self._hub: Hub | None = None
        self._link: Link | None = None
        _programs[0] += 1
        self._name = f"embernic/program/{_programs[0]}"
        self._mistake: ValueError | None = None

    def begin(self) -> None:
        """Meet the processes that are known already, and those of groups to come."""
        size = int(os.environ.get("WORLD_SIZE", "1"))
        EmberNicGroup.met[:] = [self._meet]
        if size > 1 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
            host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
            store = distributed.TCPStore(  # pyright: ignore[reportPrivateImportUsage]
                host, port, None, False, timedelta(seconds=60))
            self._join(store, int(os.environ["RANK"]), size)

    def _meet(self, group: EmberNicGroup, store: Any) -> None:
        """Meet the others in a new process group."""
        if self._link is None and group.size() > 1:
            self._join(store, group.rank(), group.size())

    def _join(self, store: Any, rank: int, size: int) -> None:
        """Become one of ``size`` processes, which share a ``store``."""
        if int(os.environ.get("LOCAL_WORLD_SIZE", size)) != size:
            raise ValueError(f"processes must be on one machine to be nodes of a cluster, but "
                             f"{size} are on several")
        if rank == 0:
            self._hub = Hub()
            host, port, key = self._hub.address
            store.set(self._name, f"{host} {port} {key.hex()}")
        host, port, key = store.get(self._name).decode().split()
        self._link = Link((host, int(port), bytes.fromhex(key)), rank, size)
        try:
            self.options = self.options.of_processes(size)
        except ValueError as error:
            self._mistake = error  # which the script may swallow
            raise

    @property
    def rank(self) -> int | None:
        """The rank of this process; None where it knows no others."""
        return self._link and self._link.rank

    @property
    def size(self) -> int:
        """Processes of the program that this one knows, itself among them."""
        return self._link.size if self._link else 1

    def failed(self, error: BaseException) -> ProcessError | None:
        """Return what to raise for an error in this process, None for the error itself.

        Where there are other processes, what went wrong is said once: of an exception in the script
        itself with its traceback.
        """
        if self._link is None:
            return None
        if not isinstance(error, Exception):  # a signal, perhaps because another one failed
            return ProcessError(1) if self._link.others_failed(0) else None
        error = self._mistake or error
        status, text = 1, " ".join(str(error).split())
        if isinstance(error, ValueError | TypeError | OSError):
            status = 2
        if error.__cause__ is not None:
            text = "".join((*format_exception(error.__cause__), f"sim: {text}\n"))
        if not self._link.others_failed(_PATIENCE):
            self._link.failed(Failure(status, text))
        return ProcessError(status)

    def gathered(self, seen: Seen) -> list[Seen] | None:
        """Return what all processes have seen, in the one that reports; None in the others.

        `ProcessError` where another process failed.
        """
        if self._mistake is not None:
            raise self._mistake
        if self._link is None:
            return [seen]
        self._link.seen(seen)
        self._link = None
        if self._hub is None:
            return None
        parts = self._hub.gathered(seen.size)
        if self._hub.failure is not None:
            raise ProcessError(self._hub.failure.status)
        return parts

    def close(self) -> None:
        """Hear no more of the others."""
        EmberNicGroup.met.clear()
        if self._hub is not None:
            self._hub.close()
