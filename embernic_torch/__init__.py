"""Hook of ``sim torch`` in the processes that a PyTorch program begins.

PyTorch calls :func:`begin` wherever it is imported, by the entry point of the group
``torch.backends``. :func:`begin` returns at once unless ``sim torch`` runs the program and says so
in the environment.
"""

import os

from embernic_names import VARIABLE, beside_program

__all__ = ["begin"]


def begin() -> None:
    """Catch the embedding bags of this process, if its environment asks for it."""
    if not os.environ.get(VARIABLE):
        return
    with beside_program():
        from sim.torch.processes.child import begin as begin_child

        begin_child(os.environ[VARIABLE])
