"""Run a PyTorch program, or a part of it, on NICs and report the results."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from os import R_OK, access
from os.path import isfile
from time import perf_counter

from gen.base.messages import one_line
from gen.base.signals import Interrupted
from sim.torch.catching.capture import Capture, capturing, claiming
from sim.torch.catching.process_group import begin
from sim.torch.catching.session import Session
from sim.torch.ends import ProgramError, ProgramStopped, as_python
from sim.torch.options import TorchOptions
from sim.torch.processes.child import follow_forks
from sim.torch.processes.leaving import command_before, leaving
from sim.torch.processes.merge import Seen
from sim.torch.processes.peers import ProcessError, Processes
from sim.torch.report.result import result_of
from sim.torch.script import Script
from sim.torch.systems import check_setting

__all__ = ["Attached", "attached", "check_script", "run_script"]

Warn = Callable[[str], None]


class Attached:
    """State and results of a program.

    result: report; None while the program runs, and in processes that do not report.
    exit_status: exit status of the script.
    seconds: wall time of the program.
    ended: cause of an early end; None after a normal end.
    """

    def __init__(self):
        self.result: dict | None = None
        self.exit_status = 0
        self.seconds = 0.0
        self.ended: ProgramError | ProgramStopped | None = None
        self.processes: Processes | None = None
        self.session: Session | None = None
        self.capture: Capture | None = None
        self.finish: Callable[[], None] = lambda: None

    def end(self, error: ProgramError | ProgramStopped) -> None:
        """Note an early end of the program.

        Raises ``error`` if the program has several processes, to end the others; a single process
        reports normally.
        """
        if self.processes is not None and not self.processes.alone:
            if self.session is not None and isinstance(error, ProgramError):
                self.session.leave_off()
            raise error
        self.ended = error


@contextmanager
def attached(options: TorchOptions, warn: Warn | None = None, script: str | None = None,
             arguments: Sequence[str] = (), leads: bool = False,
             hush: Callable[[], object] = lambda: None) -> Iterator[Attached]:
    """Run the embedding bags of the block on NICs; the report is complete after the block.

    warn: called with a line for each lookup that is not caught; by default, the line goes to
        standard error.
    script, arguments: command line of the program, for the report.
    leads: True if processes that the program starts are caught too.
    hush: called before the report of a failed program with several processes; signals should wait
        from then on.

    The report is available however the program ends, also as ``result`` of an exception.

    Raises ``ValueError`` for an unsupported optimizer and for a program without caught lookups;
    :class:`sim.torch.values.nics.NicsError` if NICs do not answer; ``RuntimeError`` inside a second
    context of the same process. In a program with several processes, `ProcessError` replaces all of
    them.
    """
    check_setting(options.timed)
    session = Session(options)
    with claiming(session), _attached(session, warn, script, arguments, leads, hush) as known:
        yield known


@contextmanager
def _attached(session: Session, warn: Warn | None, script: str | None, arguments: Sequence[str],
              leads: bool, hush: Callable[[], object]) -> Iterator[Attached]:
    """Implement `attached` with a session that may capture."""
    begin()
    known, began = Attached(), perf_counter()
    processes, own = Processes(session, leads), os.getpid()
    known.processes = processes

    def so_far() -> Seen:
        assert known.capture is not None
        with known.capture.still():
            return Seen.of(session, known.capture, known.exit_status, processes.rank,
                           processes.size)

    def report(parts: Sequence[Seen], ended: str | None, *, timed: bool = True) -> dict:
        return result_of(parts, processes.options, seconds=known.seconds, script=script,
                         arguments=arguments, ended=ended, timed=timed)

    def finish() -> None:
        """Report the results of the program."""
        known.seconds = perf_counter() - began
        if session.mistake is not None:  # the program may have caught and dropped it
            raise session.mistake
        if isinstance(known.ended, ProgramStopped):
            session.stop()
        else:
            session.finish()
        parts = processes.gathered(so_far())
        if parts is None:
            return
        known.result = report(parts, known.ended and str(known.ended))
        if known.ended is None and not known.exit_status and not any(
                part.tables or part.missed for part in parts):
            raise ValueError(f"{script or 'the program'} must look up bags with "
                             f"torch.nn.EmbeddingBag, but no lookup was caught")

    known.finish = finish
    try:
        processes.begin()
        with capturing(session, warn) as capture:
            known.session, known.capture = session, capture

            processes.so_far = so_far
            if leads:
                follow_forks(capture)
            yield known
        if os.getpid() == own:  # a process that the program has forked ends by itself
            finish()
    except BaseException as error:
        if os.getpid() != own:
            raise
        known.seconds = known.seconds or perf_counter() - began
        if not processes.alone:
            hush()
            processes.leave()
        told = error if isinstance(error, ProcessError) else processes.failed(error)
        left = processes.remains(error, told is not None)
        if left is not None and any(part.tables for part in left[0]):
            known.result = report(*left)
        elif processes.alone and known.capture is not None and known.result is None:
            session.stop()
            known.result = report([so_far()], f"{type(error).__name__}: {error}", timed=False)
        if told is not None or script is not None:
            (told or error).result = known.result  # pyright: ignore[reportAttributeAccessIssue]
        if told is None or told is error:
            raise
        raise told from error
    finally:
        if os.getpid() == own:
            processes.close()


def check_script(script: str) -> None:
    """Raise ``ValueError`` if the script does not exist or cannot be read."""
    if not isfile(script):
        raise ValueError(f"script {script!r} does not exist or is not a file")
    if script.endswith(".ipynb"):
        raise ValueError(f"script must be Python, not the notebook {script!r}: use sim.api.attach "
                         f"in a notebook")
    if not access(script, R_OK):
        raise ValueError(f"script {script!r} must be readable: check its permissions")


def run_script(options: TorchOptions, script: str, arguments: Sequence[str] = (),
               warn: Warn | None = None, hush: Callable[[], object] = lambda: None,
               left: Callable[[dict], bool] = lambda result: True) -> dict:
    """Run a script like ``python SCRIPT ARGUMENTS``, with its embedding bags on NICs.

    hush: see `attached`.
    left: called with the report if the script ends its process by a system call; returns True if
        the NICs' values were correct.

    Returns the report, whose ``exit_status`` is the script's own. A process that does not report
    returns only ``exit_status``.

    Raises the exceptions of `attached`; ``ValueError`` if the script does not exist; `ProgramError`
    for an exception of the script, and `ProgramStopped` for a signal, both with the report;
    `ProcessError` if the program has several processes.
    """
    check_script(script)
    main = Script(script, arguments)
    with attached(options, warn, script, arguments, leads=True, hush=hush) as known:
        before = command_before(script, arguments)
        with (as_python(), leaving(partial(_leave, known, left, script), before), main.entered()):
            if _run_part(known, main, main.run, script):
                _run_part(known, main, main.leave, script)
    if known.ended is not None:
        known.ended.result = known.result
        raise known.ended
    return known.result or {"exit_status": known.exit_status}


def _leave(known: Attached, left: Callable[[dict], bool], script: str, what: str, status: int,
           again: bool) -> int:
    """Report the results of a script that ends its process by a system call; return the exit
    status.

    Errors are printed in one line, because the call ends the process anyway.
    """
    assert known.capture is not None and known.processes is not None
    known.exit_status, known.processes.joins = status, False
    known.ended = ProgramError(f"{script} ended its process by {what}")
    said = None
    try:
        with known.capture.still() as taken:
            if taken:
                known.finish()
                if known.result is not None and not again:
                    status = status if left(known.result) else status or 1
            else:
                said = "another thread was inside a lookup"
    except Exception as error:
        said = one_line(str(error))
    finally:
        known.processes.close()
    if said is not None:
        print(f"sim: {known.ended}: the report is lost: {said}", file=sys.stderr, flush=True)
    elif again and known.result is not None and known.result["tables"]:
        print(f"sim: {known.ended}: the report contains only lookups of the new process",
              file=sys.stderr, flush=True)
    elif what.startswith("exec") and not again:
        print(f"sim: {known.ended}, which runs without NICs", file=sys.stderr, flush=True)
    return status


def _run_part(known: Attached, main: Script, part: Callable[[], None], script: str) -> bool:
    """Run a part of a script and note its end; return whether Python continues after such an end.
    """
    try:
        try:
            part()
        except (SystemExit, Interrupted):
            raise
        except BaseException as error:
            if known.session is not None and known.session.mistake is not None:
                return True  # the program may have replaced the exception
            shown = main.raised(error)
            if isinstance(error, KeyboardInterrupt):
                raise
            ended = ProgramError(f"{script} ended with {type(error).__name__}: {error}")
            ended.__cause__, ended.shown = error, shown
            known.end(ended)
    except SystemExit as end:
        known.exit_status = (end.code if isinstance(end.code, int) else
                             int(end.code is not None))
        if end.code is not None and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
    except (KeyboardInterrupt, Interrupted) as error:
        known.end(ProgramStopped(error))
        return isinstance(error, KeyboardInterrupt)
    return True
