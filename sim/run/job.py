"""A run together with the files that it writes."""

from collections.abc import Callable
from contextlib import ExitStack

from sim.files.locks import locked
from sim.files.outputs import LiveJson, write_json
from sim.files.stop import never, note_kept_results
from sim.job.options import RunOptions
from sim.run.pcap import PcapFile
from sim.run.predictions import PredictionFile
from sim.run.run import Run

__all__ = ["RunProgress", "run_to_files"]

RunProgress = Callable[[int, int | None, int], None]
"""Called with the samples answered, the total (None if unknown) and the cycle."""


def run_to_files(options: RunOptions, progress: RunProgress = lambda done, total, cycle: None,
                 stop: Callable[[], str | None] = never,
                 tell: Callable[[str], None] = lambda line: None) -> dict:
    """Run a cluster, write the outputs that ``options`` name, and return its measurements.

    Parameters
    ----------
    progress: called when the cluster is set up, and periodically.
    stop: returns the name of a signal to end the run early, see
        :meth:`sim.run.run.Run.execute`; a stopped run draws no picture.
    tell: called at the end with each line of information that the result does not contain.

    Raises ``ValueError`` and ``OSError``.
    """
    options.check_files()
    with locked(options.outputs.files):
        return _to_files(options, progress, stop, tell)


def _to_files(options: RunOptions, progress: RunProgress, stop: Callable[[], str | None],
              tell: Callable[[str], None]) -> dict:
    outputs = options.outputs
    job = Run(options)
    total = job.expected_samples
    live = LiveJson(outputs.json)
    with note_kept_results(live, outputs.json), ExitStack() as files:
        # Opened only after the set-up: a mistake found there leaves an older file untouched.
        predictions = files.enter_context(PredictionFile(
            outputs.predictions, options.workload.first_sample, lambda: job.prediction_before)
        ) if outputs.predictions else None
        frames = files.enter_context(PcapFile(outputs.pcap)) if outputs.pcap else None
        progress(0, total, 0)
        result = job.execute(lambda done, cycle: progress(done, total, cycle), frames, stop=stop,
                             live=live, predictions=predictions)
        write_json(result, outputs.json)
    if outputs.picture and result["interrupted"] is None:
        # Matplotlib is slow to load.
        from sim.run.picture import draw_run

        draw_run(result, outputs.picture)
    for note in job.notes:
        tell(note)
    if job.waves is not None:
        tell(job.waves.summary())
    return result
