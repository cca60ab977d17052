"""RowLanes against numpy's float32: w - step * g, each operation rounded."""

import numpy as np

from rtl.float import RECODED, RECODER_LATENCY, Recoder
from rtl.gradient.row_lanes import HALF, ROW_CYCLE, ROW_LANES_LATENCY, RowLanes
from tests.rtl.float.cases import SPECIAL, canonical
from tests.rtl.float.drive import drive
from tests.support import made

ROWS = 120


def packed(lanes, width: int = 32) -> int:
    return sum(int(lane) << width * k for k, lane in enumerate(lanes))


def test_rows_less_their_gradients_by_a_step():
    rng = np.random.default_rng(1)
    pool = np.concatenate([SPECIAL, SPECIAL | np.uint32(1 << 31),
                           rng.integers(0, 1 << 32, 100, dtype=np.uint32)])
    step = rng.choice(pool, ROWS)
    gradient, row = rng.choice(pool, (2, ROWS, HALF))
    unused = rng.integers(0, 1 << HALF, ROWS)
    with np.errstate(all="ignore"):
        product = step.view("<f4")[:, None] * gradient.view("<f4")
        expected = canonical(row.view("<f4") - product).reshape(ROWS, HALF)
    recoded = drive(made(Recoder), RECODER_LATENCY, {"i": [*step, *gradient.ravel()]})
    gradients = [packed(recoded[at:at + HALF], RECODED.size)
                 for at in range(ROWS, len(recoded), HALF)]
    results = drive(
        made(RowLanes), ROW_LANES_LATENCY,
        {"step": recoded[:ROWS], "gradient": gradients, "row": [packed(lanes) for lanes in row],
         "unused": unused}, {"row": ROW_CYCLE, "unused": ROW_CYCLE})
    for n, word in enumerate(results):
        for lane in range(HALF):
            kept = unused[n] >> lane & 1
            assert word >> 32 * lane & 0xFFFFFFFF == (row if kept else expected)[n, lane], (n, lane)
