"""A process that a PyTorch program starts while ``sim torch`` runs it."""

import atexit
import os
import signal
from contextlib import ExitStack
from functools import cache
from multiprocessing import util

from embernic_names import VARIABLE
from gen.base import signals
from sim.torch.catching.capture import Capture, capturing
from sim.torch.catching.process_group import begin as begin_groups
from sim.torch.catching.session import Session
from sim.torch.options import from_environment
from sim.torch.processes.key import read_address
from sim.torch.processes.merge import Seen
from sim.torch.processes.peers import ProcessError, Processes

__all__ = ["begin", "follow_forks"]


@cache  # more than one distribution may have the entry point
def begin(asked: str) -> None:
    """Catch lookups of this process until it ends, and then report to the server.

    asked: value of the environment variable, see :mod:`sim.torch.options`.
    """
    _begin(asked)


def follow_forks(capture: Capture) -> None:
    """Catch lookups in processes that multiprocessing forks from this process, too.

    capture: capture of this process. Forked processes are caught only if the environment requests
    it.
    """
    util.register_after_fork(capture, _forked)


def _forked(capture: Capture) -> None:
    if asked := os.environ.get(VARIABLE):
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name)
            if getattr(signal.getsignal(number), "__module__", None) == signals.__name__:
                # The launcher's handler; a process of the program ends as under Python.
                signal.signal(number, signal.default_int_handler if name == "SIGINT" else
                              signal.SIG_DFL)
        _begin(asked, capture)


def _begin(asked: str, capture: Capture | None = None) -> None:
    options, path = from_environment(asked)
    try:
        server = read_address(path)
    except FileNotFoundError:
        return  # the program has ended or replaced itself
    begin_groups()
    session, stack = Session(options), ExitStack()
    processes = Processes(session, server=server)
    processes.begin()
    session.first = processes.look_around
    if capture is None:
        capture = stack.enter_context(capturing(session))
        follow_forks(capture)
    else:
        capture.begin_anew(session)

    def so_far() -> Seen:
        with capture.still():
            return Seen.of(session, capture, 0, processes.rank, processes.size)

    processes.so_far = so_far

    @cache  # called twice, runs once
    def end() -> None:
        stack.close()
        try:
            if session.mistake is not None:
                raise session.mistake
            session.finish()
            if session.tables.all or processes.rank is not None:
                processes.gathered(so_far())
        except ProcessError:
            pass
        except Exception as error:
            processes.failed(error)

    # Forked processes of multiprocessing end without running atexit handlers.
    util.Finalize(None, end, exitpriority=100)
    atexit.register(end)
