"""The processes of a PyTorch program: how one of them knows the others."""

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

__all__ = ["ProcessError", "Processes", "is_first"]

_PATIENCE = 0.5
"""Seconds in which it shows whether a failure is only what another's has led to."""
_LAST_WORDS = 3.0
"""Seconds in which the processes of a program that has failed say what they have seen."""
_MEETING = 30.0
"""Seconds in which the first process makes the key file that the store names."""
_programs = [0]


def is_first() -> bool:
    """Return whether this is the first of the processes that ``torchrun`` began, or the only one.
    """
    return os.environ.get("RANK", "0") == "0"


class Processes:
    """The processes of one program, as one of them sees them.

    One process has the server, which collects the observations of all. It is the process that
    begins the others, and their environment names the address of the server. Where ``torchrun``
    began the processes, or they only meet in a process group ``embernic``, the process with rank 0
    has it.

    Parameters: ``session`` of this process; ``leads``, whether the environment of processes to come
    shall say where the server is; ``server``, where that is, if the environment has said so.

    Members: ``options`` of the program, with a node for each process once they know each other;
    ``so_far``, returns what was seen of this process until now, None while nobody sees it;
    ``joins``, whether the report waits for the processes that the program has begun.
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
        """Meet the processes that are known already, and those to come."""
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
        """Meet the others in a new process group."""
        if self._client is None and group.size() > 1:
            self._join(store, group.rank(), group.size())

    def _join(self, store: Any, rank: int, size: int) -> None:
        """Become one of ``size`` processes, which share a ``store``."""
        if int(os.environ.get("LOCAL_WORLD_SIZE", size)) != size:
            raise ValueError(f"processes must be on one machine to be nodes of a cluster, but "
                             f"{size} are on several")
        if self._address is None:
            if rank > 0 and self._server is not None:  # that of the first is the one
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
        """Join the others, if this process looks something up and was begun by the program."""
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
            if self._begun:  # the program has ended, and this process goes on
                return
            raise ValueError(f"the processes of the program do not find each other: {error}"
                             ) from None
        self._session.over = partial(self._client.counted, self._session)
        try:
            if size > 1:
                self.options = self.options.of_processes(size)
                if self.options.fidelity == "rtl":
                    self._session.elsewhere = self._session.update_elsewhere = self._ask
                    EmberNicGroup.came[:] = [self._come]
        except ValueError as error:
            self._mistake = error  # which the script may swallow
            raise

    def _come(self, group: EmberNicGroup, name: str) -> None:
        """A collective begins."""
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
                             "processes, which is how NICs know what the processes wait for")
        return self._client.ask(asked, changed, len(self._session.record.steps))

    @property
    def rank(self) -> int | None:
        """The rank of this process; None where it knows no others."""
        return self._client and self._client.rank

    @property
    def alone(self) -> bool:
        """Whether this process has met no other."""
        return self._client is None and not (self._server and self._server.met)

    @property
    def size(self) -> int:
        """Processes of the program that this one knows, itself among them."""
        return self._client.size if self._client else 1

    def leave(self) -> None:
        """This process ends early, by itself: what it has seen is said."""
        if self._client is not None and not self._over:
            self._client.leave()
            self._client.tell()

    def failed(self, error: BaseException) -> ProcessError | None:
        """Return what to raise for an error in this process, None for the error itself.

        Where there are other processes, what went wrong is said once: of an exception in the script
        itself with its traceback.
        """
        if self._over:  # what went wrong since is not the others' concern
            return None
        if self._client is None:
            failure = self._server and self._server.failed(_PATIENCE * isinstance(error, Exception))
            return failure and ProcessError(failure.status)
        if not isinstance(error, Exception):  # a signal, perhaps because another one failed
            return ProcessError(1) if self._client.others_failed(0) else None
        failure = failure_of(self._mistake or error)
        if not self._client.others_failed(_PATIENCE):
            self._client.failed(failure)
        return ProcessError(failure.status)

    def gathered(self, seen: Seen) -> list[Seen] | None:
        """Return what all processes have seen, in the one that reports; None in the others.

        `ProcessError` where another process failed.
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
        """Return what processes have seen of a program that has failed, and what ended it in words;
        None where this process does not report, and after a mistake of the user's.

        ``error``: of this process, whether others were ``told``.
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
        """Hear no more of the others."""
        EmberNicGroup.met.clear()
        EmberNicGroup.came.clear()
        if self._server is not None:
            self._server.close()
        if self._leads:
            os.environ.pop(VARIABLE, None)


def _address(store: Any, name: str, rank: int) -> Address:
    """Return the address of the server whose key file a ``store`` names.

    Whoever reaches the store may have put another path there.
    """
    deadline = time.monotonic() + _MEETING
    while True:
        path = store.get(name).decode(errors="replace")
        try:
            return read_address(path)
        except FileNotFoundError as error:  # perhaps of a program that has replaced itself
            if time.monotonic() < deadline:
                time.sleep(0.1)
                continue
            text = f"{path}: {error.strerror}"
        except OSError as error:
            text = f"{path[:200]!r}: {error.strerror}"
        except ValueError as error:
            text = str(error)
        text = (f"the processes of the program do not find each other: {text}; all must run on one "
                f"machine, as one user")
        if rank == 0:
            raise ValueError(text)
        sys.stderr.write(f"sim: {text}\n")
        raise ProcessError(2)


def _join_children() -> None:
    """Wait for the processes that Python itself would wait for at the end of a script."""
    for child in multiprocessing.active_children():
        if not child.daemon:
            child.join()
