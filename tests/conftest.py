"""What holds for all tests."""

import gc
import signal


def pytest_configure() -> None:
    """Let Ctrl-C end what tests start: a shell that runs us in the background has it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Spare the garbage collector what is there before the first test and stays to the end.

    Elaboration makes objects faster than the collector's thresholds were chosen for.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
