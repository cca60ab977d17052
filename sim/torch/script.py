"""A script that runs in this process like ``python SCRIPT ARGUMENTS``."""

import atexit
import builtins
import os
import runpy
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import thread as executors
from contextlib import ExitStack, contextmanager
from importlib.machinery import SourceFileLoader, SourcelessFileLoader
from os.path import dirname, join, realpath
from pkgutil import get_importer
from types import ModuleType
from typing import Any

from embernic_names import apart, shadowed_by
from sim.torch.ends import as_alone

__all__ = ["Script"]

_HOOKS = ("excepthook", "displayhook", "unraisablehook", "stdin", "stdout", "stderr", "path",
          "argv", "orig_argv")
"""Attributes of ``sys`` that a script may set; the caller's values return after the script."""

_Handler = tuple[Callable[..., object], tuple, dict[str, Any]]


class Script:
    """A script and its ``arguments``.

    Inside `entered`, the caller calls `run`, then `raised` for an exception of the script, then
    `leave`.
    """

    def __init__(self, path: str, arguments: Sequence[str] = ()):
        self._path, self._arguments = path, list(arguments)
        # Python neither normalizes the path nor resolves links.
        self._file = path if os.path.isabs(path) else join(os.getcwd(), path)
        self._packed = get_importer(path) is not None  # an archive with a __main__.py
        self._handlers: list[_Handler] = []
        self._threads: set[threading.Thread] = set()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Set ``sys``, ``__main__`` and the names of modules for the script."""
        folder = dirname(realpath(self._path))
        self._threads = set(threading.enumerate())
        with ExitStack() as stack:
            stack.callback(_restored(sys, _HOOKS))
            stack.callback(_restored(threading, ("excepthook",)))
            stack.callback(vars(builtins).update, dict(vars(builtins)))
            stack.callback(sys.path.__setitem__, slice(None), list(sys.path))
            stack.callback(sys.modules.__setitem__, "__main__", sys.modules["__main__"])
            stack.enter_context(warnings.catch_warnings())
            stack.enter_context(self._exit_handlers())
            sys.excepthook, sys.displayhook = sys.__excepthook__, sys.__displayhook__
            threading.excepthook = threading.__excepthook__
            sys.argv = [self._path, *self._arguments]
            sys.orig_argv = [*_interpreter(), *sys.argv]
            if not sys.flags.safe_path:
                del sys.path[:1]
            if not self._packed and not os.environ.get("PYTHONSAFEPATH"):
                sys.path.insert(0, folder)
            stack.enter_context(apart(shadowed_by(folder)))
            yield

    def run(self) -> None:
        """Run the script."""
        if self._packed:
            runpy.run_path(self._path, run_name="__main__")
            return
        main = ModuleType("__main__")
        loader = (SourcelessFileLoader if self._path.endswith(".pyc") else SourceFileLoader)(
            "__main__", self._file)
        vars(main).update(__loader__=loader, __annotations__={}, __builtins__=builtins,
                          __file__=self._file, __cached__=None)
        sys.modules["__main__"] = main
        code = (loader.get_code("__main__") if isinstance(loader, SourcelessFileLoader) else
                compile(loader.get_data(self._file), self._file, "exec", dont_inherit=True))
        try:
            exec(code, vars(main))
        finally:
            for owner in (sys, threading):  # end the script's tracing and profiling
                owner.settrace(None)
                owner.setprofile(None)

    def raised(self, error: BaseException) -> bool:
        """Call the script's ``sys.excepthook`` for an exception; return whether the script has set
        it.

        Afterwards the traceback of ``error`` contains only the script's frames.
        """
        as_alone(error)
        sys.last_type, sys.last_value, sys.last_traceback = (
            type(error), error, error.__traceback__)
        if sys.excepthook is sys.__excepthook__:
            return False
        try:
            sys.excepthook(type(error), error, error.__traceback__)
        except SystemExit:
            raise
        except BaseException as second:
            print("Error in sys.excepthook:", file=sys.stderr)
            sys.__excepthook__(type(second), as_alone(second), second.__traceback__)
            print("\nOriginal exception was:", file=sys.stderr)
            sys.__excepthook__(type(error), error, error.__traceback__)
        return True

    def leave(self) -> None:
        """Wait for the script's threads and call its exit handlers, as Python does at its end."""
        try:
            while threads := self._own_threads():
                for thread in threads:
                    thread.join()
        except KeyboardInterrupt as error:  # Python stops waiting too
            sys.__excepthook__(KeyboardInterrupt, as_alone(error), error.__traceback__)
        while self._handlers:
            call, arguments, named = self._handlers.pop()
            try:
                call(*arguments, **named)
            except Exception as error:
                print(f"Exception ignored in atexit callback: {call!r}", file=sys.stderr)
                sys.__excepthook__(type(error), as_alone(error), error.__traceback__)
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()

    def _own_threads(self) -> list[threading.Thread]:
        """Return the threads of the script that Python waits for.

        Threads of an executor are excluded: they wait for the end of the process.
        """
        return [thread for thread in threading.enumerate()
                if not thread.daemon and thread not in self._threads
                and thread is not threading.current_thread()
                and thread not in executors._threads_queues]

    @contextmanager
    def _exit_handlers(self) -> Iterator[None]:
        """Collect the exit handlers of the script."""
        weakref.finalize(self, bool).detach()  # register Python's own handler first
        register, unregister = atexit.register, atexit.unregister

        def registered(func: Any, *args: Any, **kwargs: Any) -> Any:
            self._handlers.append((func, args, kwargs))
            return func

        def unregistered(func: Any) -> None:
            self._handlers[:] = [each for each in self._handlers if each[0] != func]
            unregister(func)

        atexit.register, atexit.unregister = registered, unregistered
        try:
            yield
        finally:
            atexit.register, atexit.unregister = register, unregister
            for call, arguments, named in self._handlers:  # the script ended before `leave`
                register(call, *arguments, **named)


def _interpreter() -> list[str]:
    """Return the command of the Python interpreter, up to ``-m``."""
    given = list(sys.orig_argv)
    found = given[:given.index("-m")] if "-m" in given else given[:1]
    return [each for each in found if each != "-P"]


def _restored(owner: Any, names: Sequence[str]) -> Callable[[], None]:
    """Return a function that restores the current attributes of ``owner``."""
    values = {name: getattr(owner, name) for name in names}
    return lambda: vars(owner).update(values)
