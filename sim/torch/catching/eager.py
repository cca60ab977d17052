"""PyTorch's compiler while operators are caught: it compiles nothing."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

__all__ = ["eager"]


@contextmanager
def eager() -> Iterator[None]:
    """Let what ``torch.compile`` makes run as it is written.

    Where operators are caught, PyTorch's compiler skips what it is given, and raises where it may
    not (``fullgraph``). This asks it for that before it finds out itself. It is not imported unless
    the program uses it: that takes a second.
    """
    compile = torch.compile
    with ExitStack() as stack:
        def ask() -> None:
            stack.enter_context(torch.compiler.set_stance("force_eager"))

        def asked(*args: Any, **kwargs: Any) -> Any:
            if torch.compile is asked:
                torch.compile = compile
                ask()
            return compile(*args, **kwargs)

        if "torch._dynamo" in sys.modules:
            ask()
        else:
            torch.compile = asked
        try:
            yield
        finally:
            torch.compile = compile
