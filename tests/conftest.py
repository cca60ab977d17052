"""What holds for all tests."""

import gc


def pytest_collection_finish() -> None:
    """Spare the garbage collector what is there before the first test and stays to the end.

    Elaboration makes objects faster than the collector's thresholds were chosen for.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
