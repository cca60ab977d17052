"""Leads the embedding bags of the processes that a PyTorch program begins through NICs, too.

PyTorch calls :func:`begin` wherever it is imported, by the entry point of the group
``torch.backends``. It does nothing unless ``sim torch`` runs the program, which then says so in the
environment of the processes that the program begins.
"""

import os

__all__ = ["VARIABLE", "begin"]

VARIABLE = "EMBERNIC_TORCH"
"""What ``sim torch`` sets: the options of the program, and where its processes are put together."""


def begin() -> None:
    """Begin in a process, if its environment asks for it."""
    if os.environ.get(VARIABLE):
        import sys

        folder = os.path.dirname(os.path.abspath(__file__))
        sys.path.insert(0, folder)  # the script's folder may have a `sim` of its own
        try:
            from sim.torch.processes.child import begin as begin_child
        finally:
            sys.path.remove(folder)
        begin_child(os.environ[VARIABLE])
