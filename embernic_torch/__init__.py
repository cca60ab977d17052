"""Hook of ``sim torch`` in the processes of a PyTorch program.

PyTorch calls :func:`begin` on import, through the entry point group ``torch.backends``.
:func:`begin` returns at once unless the environment contains the request of ``sim torch``.
"""

import os

from embernic_names import VARIABLE, beside_program

__all__ = ["begin"]


def begin() -> None:
    """Capture the embedding bags of this process, if its environment requests it."""
    if not os.environ.get(VARIABLE):
        return
    with beside_program():
        from sim.torch.processes.child import begin as begin_child

        begin_child(os.environ[VARIABLE])
