"""PyTorch programs with their embedding bags on NICs."""

from collections.abc import Callable
from os.path import abspath
from typing import Any

from sim.files.outputs import check_folder, write_json
from sim.job.arguments import takes
from sim.job.outputs import Outputs
from sim.job.program import AttachArguments, TorchArguments

__all__ = ["attach", "torch"]


@takes(TorchArguments)
def torch(options: TorchArguments, warn: Callable[[str], None] | None = None,
          left: Callable[[dict], bool] | None = None) -> dict:
    """Run an unedited PyTorch script with its embedding bags on NICs; needs extra ``torch``.

    >>> from pathlib import Path
    >>> _ = Path("bag.py").write_text(
    ...     "import torch\\n"
    ...     "bag = torch.nn.EmbeddingBag(100, 16, mode='sum')\\n"
    ...     "for step in range(4):\\n"
    ...     "    bag(torch.arange(8) + step, torch.arange(0, 8, 2)).sum()\\n")
    >>> result = torch("bag.py", nodes=2)
    >>> result["mini_batches"]["inference"]["lookups"], len(result["systems"]["inference"]["rows"])
    (32, 4)

    Returns
    -------
    dict
        ``schema``, ``script``, ``options``, ``tables``, ``processes``, ``steps``,
        ``mini_batches``, ``values``, ``nics``, ``gradients``, ``not_caught``, ``systems``,
        ``notes``, ``exit_status``, see :func:`sim.torch.report.result.result_of`. If the program
        has several processes, the first returns the report and writes its files; the others
        return ``exit_status`` only.

    Raises ``ValueError``, ``TypeError`` and ``OSError``; :class:`sim.torch.ends.ProgramError`
    for an exception of the script, :class:`sim.torch.ends.ProgramStopped` for a signal, and
    :class:`sim.torch.values.nics.NicsError` if NICs do not answer. Once the script has begun, the
    report is written however the script ends; the exception has it as ``result``. If a process
    fails, all processes raise :class:`sim.torch.processes.peers.ProcessError`, and the cause is
    written to standard error. The first process then writes the report, except after an invalid
    argument.
    """
    from sim.torch.ends import unhurried
    from sim.torch.options import TorchOptions
    from sim.torch.program import check_script, run_script
    from sim.torch.report.page import write_report

    outputs = Outputs.of(options, "script")
    asked = TorchOptions.of(options)
    check_script(options.script)
    if options.report is not None:
        check_folder(options.report, "report")
    # The script may change the working directory.
    file, folder = (path and abspath(path) for path in (outputs.json, options.report))

    def written(result: dict | None) -> None:
        if result is None or "systems" not in result:
            return
        write_json(result, file)
        if folder is not None:
            write_report(result, folder)

    def on_leaving(result: dict) -> bool:
        written(result)
        return left is None or left(result)

    with unhurried() as hush:
        try:
            result = run_script(asked, options.script, options.arguments, warn, hush, on_leaving)
        except BaseException as end:
            written(getattr(end, "result", None))
            raise
        written(result)
    return result


@takes(AttachArguments)
def attach(options: AttachArguments, warn: Callable[[str], None] | None = None) -> Any:
    """Return a context in which the embedding bags of this program are on NICs.

    ``with attach(system="en") as program:`` captures the lookups inside. Afterwards
    ``program.result`` is the result of :func:`torch`, also if an exception left the context. Only
    the first process has it; it is None in the others. The options are those of :func:`torch`.

    Raises ``ValueError`` and ``TypeError`` here, ``RuntimeError`` on entering if another context
    is open, and on leaving the exceptions of :func:`torch`.
    """
    from sim.torch.options import TorchOptions
    from sim.torch.program import attached

    return attached(TorchOptions.of(options), warn)
