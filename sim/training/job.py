"""A training with its output files."""

from collections.abc import Callable
from contextlib import ExitStack

from sim.files.locks import locked
from sim.files.outputs import LiveJson, write_json
from sim.files.stop import never, note_kept_results
from sim.run.pcap import PcapFile
from sim.training.options import TrainOptions
from sim.training.train import Training

__all__ = ["TrainProgress", "train_to_files"]

TrainProgress = Callable[[int, int | None, float, dict | None], None]
"""Callback with the steps done, the total (None if unknown), the loss of the last step, and the
interval that it ended or None."""


def train_to_files(options: TrainOptions,
                   progress: TrainProgress = lambda done, total, loss, interval: None,
                   stop: Callable[[], str | None] = never,
                   tell: Callable[[str], None] = lambda line: None) -> dict:
    """Train, write the outputs that ``options`` name, and return the result.

    Parameters
    ----------
    progress: called after set-up, with the steps of the checkpoint and loss NaN, and after each
        step.
    stop: returns the name of a signal to end the training early, see
        :meth:`sim.training.train.Training.execute`.
    tell: called at the end with each line of information that the result does not contain.

    Raises ``ValueError`` and ``OSError``.
    """
    options.check_files()
    with locked(options.files):
        return _to_files(options, progress, stop, tell)


def _to_files(options: TrainOptions, progress: TrainProgress, stop: Callable[[], str | None],
              tell: Callable[[str], None]) -> dict:
    outputs = options.run.outputs
    training = Training(options)
    total = training.expected_steps
    live = LiveJson(outputs.json)
    with note_kept_results(live, outputs.json), ExitStack() as files:
        # Opened after the set-up, whose errors then leave an older file untouched.
        frames = files.enter_context(PcapFile(outputs.pcap)) if outputs.pcap else None
        progress(training.first_step, total, float("nan"), None)
        result = training.execute(
            lambda done, loss, interval: progress(done, total, loss, interval), frames, stop=stop,
            live=live)
        write_json(result, outputs.json)
    waves = None if training.nics is None else training.nics.simulation.waves
    if waves is not None:
        tell(waves.summary())
    return result
