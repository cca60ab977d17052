"""Disable PyTorch's compiler while operators are caught."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

__all__ = ["eager"]


@contextmanager
def eager() -> Iterator[None]:
    """Run functions of ``torch.compile`` uncompiled.

    While operators are caught, PyTorch's compiler skips its input and raises an error with
    ``fullgraph``. Setting the stance beforehand avoids both. The compiler is imported only if the
    program uses it, because the import takes a second.
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
