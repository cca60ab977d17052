"""Progress of commands: updated in place on a terminal, otherwise printed at intervals."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

__all__ = ["JobLines", "PointBar", "RunBar", "SampleCount", "TrainBar"]

_FIRST = 1 << 14

_LINE_SECONDS = 30.0
"""Seconds between two lines of progress on the same work without a terminal."""


class SampleCount:
    """Shows the number of samples read so far, for an input of unknown length.

    Called with the samples done; used in a ``with`` statement. Without a terminal it prints a line
    each time the number doubles, from 16,384 samples on.
    """

    def __init__(self, console: Console):
        self._console = console
        self._status = console.status("reading samples")
        self._next = _FIRST

    def __enter__(self) -> "SampleCount":
        self._status.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._status.stop()

    def __call__(self, done: int) -> None:
        if self._console.is_terminal:
            self._status.update(f"{done:,} samples")
        elif done >= self._next:
            self._console.print(f"{done:,} samples", highlight=False)
            while self._next <= done:
                self._next *= 2


class _Bar:
    """A progress bar on a terminal, from the first `_show` to the end of a ``with`` statement.

    Compilation of the NICs, before the first `_show`, has its own display.
    """

    def __init__(self, console: Console, doing: str, column: str):
        self._console = console
        self._doing = doing
        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
            TextColumn(column), TimeElapsedColumn(), console=console,
            disable=not console.is_terminal)

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def _show(self, done: int, total: int | None, **values: float) -> None:
        if not self._bar.task_ids:
            self._bar.start()
            self._bar.add_task(self._doing, total=total, completed=done, **values)
        else:
            self._bar.update(self._bar.task_ids[0], completed=done, **values)


class RunBar(_Bar):
    """Shows the progress of a run; without a terminal, a line per tenth of the samples."""

    def __init__(self, console: Console):
        super().__init__(console, "running", "samples, cycle {task.fields[cycle]:,}")
        self._next: int | None = None

    def __call__(self, done: int, total: int | None, cycle: int) -> None:
        self._show(done, total, cycle=cycle)
        if self._console.is_terminal or not total:
            return
        step = max(1, total // 10)
        self._next = step if self._next is None else self._next
        if done >= self._next:
            self._console.print(f"{done:,} samples, cycle {cycle:,}", highlight=False)
            self._next = (done // step + 1) * step


class TrainBar(_Bar):
    """Shows the progress of a training, and a line per interval.

    Parameters: ``checkpoint``, the file from which the training may resume.
    """

    def __init__(self, console: Console, checkpoint: str | None):
        super().__init__(console, "training", "steps, loss {task.fields[loss]:.5f}")
        self._checkpoint = checkpoint
        self._begun = False

    def __call__(self, done: int, total: int | None, loss: float, interval: dict | None) -> None:
        from sim.training.report import interval_line  # needs the NICs, which help does without

        if not self._begun and done:
            self._console.print(f"{self._checkpoint}: resuming after step {done:,}",
                                highlight=False, soft_wrap=True)
        self._begun = True
        self._show(done, total, loss=loss)
        if interval is not None:
            self._console.print(interval_line(interval), highlight=False)


class PointBar(AbstractContextManager):
    """Progress of a sweep: a bar on a terminal, otherwise a line every 30 seconds.

    The time left is estimated from the points after the first; the first also compiles the NICs.
    """

    def __init__(self, console: Console):
        self._console = console
        self._bar = Progress(
            TextColumn("points"), BarColumn(), TextColumn("{task.fields[points]}"),
            TimeRemainingColumn(),
            console=console, disable=not console.is_terminal)
        self._task = self._bar.add_task("points", total=1.0, points="")
        self._calls = 0
        self._began = self._first = self._next = 0.0

    def __enter__(self) -> "PointBar":
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, done: int, total: int, share: float) -> None:
        now = time.monotonic()
        if self._calls == 0:  # the request is valid, and the first point begins
            self._bar.start()
        if self._calls < 2:
            self._began, self._first = now, share
        self._calls += 1
        self._bar.update(self._task, completed=share, points=f"{done:,}/{total:,}")
        if self._console.is_terminal or (now < self._next and done < total):
            return
        self._next = now + _LINE_SECONDS
        left = ""
        if self._first < share and done < total:
            seconds = (now - self._began) / (share - self._first) * (1 - share)
            left = f", about {seconds / 60:.0f} min left"
        self._console.print(f"{done:,} of {total:,} points{left}", highlight=False)


class JobLines:
    """Lines of consecutive jobs, which may show their own progress in between.

    The first line of a job is printed, then at most a line every 30 seconds.
    """

    def __init__(self, console: Console, now: Callable[[], float] = time.monotonic):
        self._console = console
        self._now = now
        self._job: int | None = None
        self._next = 0.0

    def __call__(self, done: int, total: int, line: str) -> None:
        now = self._now()
        if done == self._job and now < self._next:
            return
        self._job, self._next = done, now + _LINE_SECONDS
        self._console.print(f"[dim]{done} of {total}:[/dim] {escape(line)}", highlight=False,
                            soft_wrap=True)
