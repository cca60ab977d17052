"""Processes of a PyTorch program, from the view of each process."""

import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np
from torch import distributed

from embernic_names import VARIABLE
from gen.base.signals import Interrupted
from sim.torch.catching.process_group import BETWEEN_TWO, EmberNicGroup
from sim.torch.catching.session import Session
from sim.torch.ends import ProgramError, ProgramStopped
from sim.torch.lookups.query import Query
from sim.torch.options import to_environment
from sim.torch.processes.client import GRACE, REPORTING, Client, ProcessError, failure_of
from sim.torch.processes.key import Address, read_address
from sim.torch.processes.merge import Seen, with_nics
from sim.torch.processes.server import Server
from sim.torch.processes.wire import AuthenticationError
from sim.torch.values.asked import AskedUpdate

__all__ = ["ProcessError", "Processes", "first_says_it"]

_PATIENCE = 0.5
"""Seconds to wait for an earlier failure that may have caused this failure."""
_LAST_WORDS = 3.0
"""Seconds that the processes of a failed program get to send their observations."""
_FIRST_WORDS = 30.0
"""Seconds that the first process gets to print a mistake of the command line."""
_MEETING = 30.0
"""Seconds that the first process gets to create its key file."""
_programs = [0]


def first_says_it() -> bool:
    """Return whether rank 0 of ``torchrun`` prints a mistake of the command line, which all
    processes find.

    If it does, it fails, and ``torchrun`` stops this process. It may start later, so this process
    waits: a process that ends at once would have rank 0 stopped first.
    """
    if os.environ.get("RANK", "0") == "0":
        return False
    try:
        time.sleep(_FIRST_WORDS)
    except Interrupted:
        return True
    return False


class Processes:
    """The processes of a program, from the view of a process.

    The server collects all observations. It runs in the process that starts the others, which find
    its address in their environment. With ``torchrun``, or if the processes only meet in a process
    group ``embernic``, it runs in rank 0.

    session: session of this process.
    leads: True to write the server's address to the environment of later processes.
    server: address of the server, if the environment contains it.

    options: member; options of the program, with a node for each known process.
    so_far: member; function that returns the observations so far; None before capture begins.
    joins: member; True if the report waits for processes that the program has started.
    """

    def __init__(self, session: Session, leads: bool = False, server: Address | None = None):
        self._session, self.options = session, session.options
        self._leads, self._address, self._begun = leads, server, server is not None
        self._server: Server | None = None
        self._client: Client | None = None
        self._mistake: ValueError | None = None
        self._over, self.joins = False, True
        self.so_far: Callable[[], Seen] | None = None
        _programs[0] += 1
        restart = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        self._name = f"embernic/program/{restart}/{_programs[0]}"

    def begin(self) -> None:
        """Connect to known processes, and prepare for later processes."""
        EmberNicGroup.met[:] = [self._meet]
        size = int(os.environ.get("WORLD_SIZE", "1"))
        if self._address is None and size > 1 and (
                os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"):
            host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
            store = distributed.TCPStore(  # pyright: ignore[reportPrivateImportUsage]
                host, port, None, False, timedelta(seconds=60))
            self._join(store, int(os.environ["RANK"]), size)
        elif self._leads:
            self._server = Server(self.options)
            os.environ[VARIABLE] = to_environment(self.options, self._server.address.path)

    def _meet(self, group: EmberNicGroup, store: Any) -> None:
        """Connect to the processes of a new process group."""
        if self._client is None and group.size() > 1:
            self._join(store, group.rank(), group.size())

    def _join(self, store: Any, rank: int, size: int) -> None:
        """Join ``size`` processes that share a ``store``."""
        if int(os.environ.get("LOCAL_WORLD_SIZE", size)) != size:
            raise ValueError(f"processes must run on the same machine, but {size} processes run on "
                             f"several: start torchrun on a single machine")
        if self._address is None:
            if rank > 0 and self._server is not None:  # rank 0 runs the only server
                self._server.close()
                self._server = None
            if rank == 0:
                self._server = self._server or Server(self.options)
                self._server.first_of_group = True
                store.set(self._name, self._server.address.path)
            self._address = _address(store, self._name, rank)
            if self._leads:
                os.environ[VARIABLE] = to_environment(self.options, self._address.path)
        self._know(rank, size)

    def look_around(self) -> None:
        """Join the processes of the program, if the program started this process."""
        if self._client is not None or self._address is None:
            return
        if distributed.is_available() and distributed.is_initialized():
            rank, size = distributed.get_rank(), distributed.get_world_size()
        else:
            rank, size = (int(os.environ.get(name, "-1")) for name in ("RANK", "WORLD_SIZE"))
        self._know(*((rank, size) if size > 1 else (None, 1)))

    def _know(self, rank: int | None, size: int) -> None:
        assert self._address is not None
        try:
            self._client = Client(self._address, rank, size, lambda: self.so_far and self.so_far(),
                              GRACE if self._server is None else REPORTING, not self._begun)
        except (OSError, AuthenticationError) as error:
            self._address = None
            if self._begun:  # the program has ended; this process continues
                return
            raise ValueError(f"the processes of the program cannot connect: {error}"
                             ) from None
        self._session.over = partial(self._client.counted, self._session)
        try:
            if size > 1:
                self.options = self.options.of_processes(size)
                if self.options.fidelity == "rtl":
                    self._session.elsewhere = self._session.update_elsewhere = self._ask
                    EmberNicGroup.came[:] = [self._come]
        except ValueError as error:
            self._mistake = error  # the script may catch and drop it
            raise

    def _come(self, group: EmberNicGroup, name: str) -> None:
        """Report the begin of a collective to the server."""
        if self._client is None:
            return
        if group.size() == self._client.size and name not in BETWEEN_TWO:
            self._client.come()
        else:
            self._client.wait()

    def _ask(self, asked: Sequence[Query] | AskedUpdate, changed: bool) -> Sequence[np.ndarray]:
        assert self._client is not None
        if not any(group.size() == self._client.size for group in EmberNicGroup.made):
            raise ValueError("the process group must be embernic with fidelity rtl and several "
                             "processes: pass it as the backend")
        return self._client.ask(asked, changed, len(self._session.record.steps))

    @property
    def rank(self) -> int | None:
        """Rank of this process; None for a single process."""
        return self._client and self._client.rank

    @property
    def alone(self) -> bool:
        """True if this process has not met a second process."""
        return self._client is None and not (self._server and self._server.met)

    @property
    def size(self) -> int:
        """Number of known processes, including this process."""
        return self._client.size if self._client else 1

    def leave(self) -> None:
        """Send the observations of this process, which ends early."""
        if self._client is not None and not self._over:
            self._client.leave()
            self._client.tell()

    def failed(self, error: BaseException) -> ProcessError | None:
        """Return the exception to raise for an error in this process; None for the error itself.

        If there are other processes, the server shows the first failure, with a traceback for an
        exception of the script.
        """
        if self._over:  # later errors do not affect the other processes
            return None
        if self._client is None:
            failure = self._server and self._server.failed(_PATIENCE * isinstance(error, Exception))
            return failure and ProcessError(failure.status)
        if not isinstance(error, Exception):  # a signal, perhaps after a failure elsewhere
            return ProcessError(1) if self._client.others_failed(0) else None
        failure = failure_of(self._mistake or error)
        if not self._client.others_failed(_PATIENCE):
            self._client.failed(failure)
        return ProcessError(failure.status)

    def gathered(self, seen: Seen) -> list[Seen] | None:
        """Return the observations of all processes in the process that reports; None in the others.

        Raises `ProcessError` if a different process failed.
        """
        if self._mistake is not None:
            raise self._mistake
        if self._client is not None:
            self._client.seen(seen)
        if self._server is None:
            self._over = True
            return [seen] if self._address is None else None
        if self.joins and not self._server.first_of_group:
            _join_children()
        parts = self._server.gathered(_LAST_WORDS)
        if self._server.failure is not None:
            raise ProcessError(self._server.failure.status)
        self._over = True
        if self._server.nics is not None:
            with_nics(parts, self._server.nics)
        if seen.rank is None:
            parts = [part for part in (*parts, seen) if part.tables or part.rank is not None] or [
                seen]
        size = max(part.size for part in parts)
        if size > 1:
            self.options = self.options.of_processes(size)
            known = {part.rank for part in parts}
            parts += [Seen.counted(rank, size) for rank in range(size) if rank not in known]
        return parts

    def remains(self, error: BaseException, told: bool) -> tuple[list[Seen], str] | None:
        """Return the observations of a failed program, and the reason of its end in words.

        Returns None in a process that does not report, and after a user error.

        error: error of this process.
        told: True if the other processes were notified.
        """
        if self._server is None or self._over or self.alone:
            return None
        failure = self._server.failure
        ended = (failure.ended if failure is not None else
                 str(error) if not told and isinstance(error, ProgramError | ProgramStopped)
                 else "")
        if not ended:
            return None
        parts = self._server.so_far(_LAST_WORDS)
        if self._client is None and self.so_far is not None:
            parts.append(self.so_far())
        if self._server.nics is not None and parts:
            with_nics(parts, self._server.nics)
        if self._server.size > 1:
            self.options = self.options.of_processes(self._server.size)
        return parts, ended

    def close(self) -> None:
        """Close the connection to the other processes."""
        EmberNicGroup.met.clear()
        EmberNicGroup.came.clear()
        if self._server is not None:
            self._server.close()
        if self._leads:
            os.environ.pop(VARIABLE, None)


def _address(store: Any, name: str, rank: int) -> Address:
    """Return the address of the server whose key file a ``store`` names.

    Other users may have access to the store, so the path is not trusted.
    """
    deadline = time.monotonic() + _MEETING
    while True:
        path = store.get(name).decode(errors="replace")
        try:
            return read_address(path)
        except FileNotFoundError as error:  # perhaps the program has replaced itself
            if time.monotonic() < deadline:
                time.sleep(0.1)
                continue
            text = f"{path}: {error.strerror}"
        except OSError as error:
            text = f"{path[:200]!r}: {error.strerror}"
        except ValueError as error:
            text = str(error)
        text = (f"the processes of the program cannot connect: {text}; run all processes on one "
                f"machine as the same user")
        if rank == 0:
            raise ValueError(text)
        sys.stderr.write(f"sim: {text}\n")
        raise ProcessError(2)


def _join_children() -> None:
    """Wait for the processes that Python waits for at the end of a script."""
    for child in multiprocessing.active_children():
        if not child.daemon:
            child.join()
