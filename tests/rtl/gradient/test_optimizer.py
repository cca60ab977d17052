"""RowOptimizer against numpy, every operation in float32: modes, sizes, stalls, special values."""

import numpy as np
import pytest

from host.dlrm.optimizer import Optimizer
from rtl.config import LANES, preset
from rtl.formats import OptimizerMode
from rtl.gradient import RowOptimizer
from tests.rtl.float.cases import SPECIAL, canonical
from tests.rtl.power_up import powered_up
from tests.support import counts_of, made, receiver, sender, simulate

SGD, ADAGRAD = OptimizerMode
RATE, EPSILON = np.float32(0.1), np.float32(1e-8)


def updated(mode, w, g, m, rate=RATE, epsilon=EPSILON):
    """Return the new rows [n, d] and states [n] of rows ``w``, as bits."""
    n, d = g.shape
    with np.errstate(all="ignore"):
        steps = np.full(n, rate)
        if mode == ADAGRAD:
            squares = np.zeros((n, max(d, LANES)), np.float32)
            squares[:, :d] = g * g
            slices = squares.reshape(n, -1, LANES)
            while slices.shape[2] > 1:
                slices = slices[:, :, 0::2] + slices[:, :, 1::2]
            total = slices[:, 0, 0]
            for k in range(1, slices.shape[1]):
                total = total + slices[:, k, 0]
            m = m + total / np.float32(d)
            steps = rate / (np.sqrt(m) + epsilon)
        w = w - steps[:, None] * g
    assert w.dtype == m.dtype == np.float32
    return canonical(w), canonical(m) if mode == ADAGRAD else m.view(np.uint32)


def random_rows(n, d, seed):
    """Return rows, gradients and states of typical sizes in training; some of few bits."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal((n, d)).astype(np.float32)
    g = np.ldexp(rng.standard_normal((n, d)), rng.integers(-12, 3, (n, 1))).astype(np.float32)
    g[::3] = np.round(g[::3] * 8) / 8
    m = np.ldexp(rng.random(n), rng.integers(-20, 4, n)).astype(np.float32)
    m[rng.random(n) < 0.2] = 0
    return w, g, m


def special_rows(n, d, seed):
    """Return rows of any bits, and of zeros, subnormals, infinities and NaN of both signs."""
    rng = np.random.default_rng(seed)
    special = np.concatenate([SPECIAL, SPECIAL | np.uint32(1 << 31)])
    bits = [special[rng.integers(0, len(special), shape)] for shape in ((n, d), (n, d), n)]
    w, g, m = bits
    g[::4] = 0
    g[1::4] = (g[1::4] & 0x9FFFFFFF) + np.uint32(32 << 23)
    m[2::4] &= np.uint32(0x7FFFFFFF)
    m[::8] = 0
    w[3::4] = rng.integers(0, 1 << 32, (len(w[3::4]), d), dtype=np.uint32)
    return tuple(a.view(np.float32) for a in bits)


def words(vector):
    """Return the beats of a vector of float32, as integers."""
    lanes = np.zeros(-(-len(vector) // LANES) * LANES, np.uint32)
    lanes[:len(vector)] = vector.view(np.uint32)
    return [int.from_bytes(beat.tobytes(), "little") for beat in lanes.reshape(-1, LANES)]


def beats_in(w, g, m):
    # A beat that does not end its row has neither state nor id.
    items = []
    for k in range(len(w)):
        pairs = list(zip(words(w[k]), words(g[k])))
        items += [{"row": row, "gradient": gradient, "last": int(j == len(pairs) - 1),
                   "state": int(m[k].view(np.uint32)) if j == len(pairs) - 1 else 0xBAD,
                   "id": 3 * k + 1 if j == len(pairs) - 1 else 0}
                  for j, (row, gradient) in enumerate(pairs)]
    return items


def beats_out(w, m):
    items = []
    for k in range(len(w)):
        beats = words(w[k])
        items += [{"row": row, "state": int(m[k]), "id": 3 * k + 1,
                   "last": int(j == len(beats) - 1)} for j, row in enumerate(beats)]
    return items


def settings(dut, mode, dimension, rate=RATE, epsilon=EPSILON):
    async def bench(ctx):
        ctx.set(dut.mode, mode)
        ctx.set(dut.dimension, dimension)
        ctx.set(dut.learning_rate, int(rate.view(np.uint32)))
        ctx.set(dut.epsilon, int(epsilon.view(np.uint32)))
        for _ in range(32):
            await ctx.tick()
    return bench


def run(batches, *, maximum, stall=(0.0, 0.0), seed=0):
    """Send batches of (mode, dimension, rows, rate, epsilon), each after the previous one is done.
    """
    dut = made(RowOptimizer, preset("tiny").with_fields(max_dimension=maximum))
    work, everything = [], []
    for mode, dimension, (w, g, m), rate, epsilon in batches:
        expected = beats_out(*updated(mode, w, g, m, rate, epsilon))
        work.append((settings(dut, mode, dimension, rate, epsilon), beats_in(w, g, m),
                     len(expected)))
        everything += expected
    taken: list[dict] = []
    end: dict[str, int] = {}

    async def feed(ctx):
        done = 0
        for k, (setting, items, count) in enumerate(work):
            await setting(ctx)
            await sender(dut.i, items, stall=stall[0], seed=seed + k)(ctx)
            done += count
            while len(taken) < done:
                await ctx.tick()
        for _ in range(4):
            await ctx.tick()
        assert ctx.get(dut.idle) and not ctx.get(dut.o.valid)
        end.update(counts_of(ctx, dut.counters))

    async def take(ctx):
        await receiver(dut.o, taken, len(everything), stall=stall[1], seed=seed + 99)(ctx)

    simulate(powered_up(dut, seed), feed, take, limit=8000)
    for got, wanted in zip(taken, everything):
        assert got == wanted
    assert end["beats"] == len(everything)
    assert end["rows"] == sum(len(rows[0]) for _, _, rows, _, _ in batches)
    if stall[1] in (0.0, 0.8):
        assert bool(end["stall_out"]) == bool(stall[1])


@pytest.mark.few(1)
@pytest.mark.parametrize("maximum, dimension, rows, stall", [
    (16, 4, 20, (0.0, 0.0)), (16, 8, 20, (0.5, 0.0)), (16, 16, 40, (0.0, 0.8)),
    pytest.param(64, 64, 15, (0.3, 0.3), marks=pytest.mark.slow),
    pytest.param(64, 16, 30, (0.0, 0.8), marks=pytest.mark.slow),
    pytest.param(256, 256, 6, (0.1, 0.0), marks=pytest.mark.slow), (256, 48, 8, (0.2, 0.2))])
def test_rows_take_their_steps(maximum, dimension, rows, stall):
    run([(mode, dimension, random_rows(rows, dimension, dimension + mode), RATE, EPSILON)
         for mode in (ADAGRAD, SGD)], maximum=maximum, stall=stall)


@pytest.mark.thorough
@pytest.mark.parametrize("dimension", [4, pytest.param(32, marks=pytest.mark.slow)])
def test_special_values(dimension):
    """Lanes that are not used stay +0, even where the step is infinite or NaN."""
    zero, minus = np.float32(0), np.float32(-0.0)
    tiny, infinite = np.float32(1e-45), np.float32(np.inf)
    run([(mode, dimension, special_rows(16, dimension, k), rate, epsilon)
         for k, (mode, rate, epsilon) in enumerate([
             (ADAGRAD, RATE, zero), (SGD, RATE, zero), (ADAGRAD, minus, tiny),
             (ADAGRAD, infinite, EPSILON), (SGD, infinite, zero), (SGD, tiny, zero),
             (ADAGRAD, np.float32(-3e38), zero)])],
        maximum=max(16, dimension))


@pytest.mark.parametrize("name, mode", [("sgd", SGD), ("rowwise-adagrad", ADAGRAD)])
@pytest.mark.parametrize("dimension", [8, 80])
def test_the_host_means_the_same(name, mode, dimension):
    w, g, m = random_rows(200, dimension, 7)
    rows, states = Optimizer(name, float(RATE), float(EPSILON)).apply(w, m, g)
    expected, expected_states = updated(mode, w, g, m)
    np.testing.assert_array_equal(rows.view(np.uint32), expected)
    np.testing.assert_array_equal(states.view(np.uint32), expected_states)


async def _stream(ctx, dut, items):
    """Send ``items`` without a gap and take the output; return the cycles of both, from 0."""
    sent, came, k, cycle = [], [], 0, 0
    ctx.set(dut.o.ready, 1)
    while len(came) < len(items):
        ctx.set(dut.i.valid, k < len(items))
        if k < len(items):
            ctx.set(dut.i.payload, items[k])
        _, _, ready, valid = await ctx.tick().sample(dut.i.ready, dut.o.valid)
        if k < len(items) and ready:
            sent.append(cycle)
            k += 1
        if valid:
            came.append(cycle)
        cycle += 1
    return sent, came


@pytest.mark.thorough
@pytest.mark.parametrize("maximum, beats, rows", [
    (16, 1, 140), *(pytest.param(*sizes, marks=pytest.mark.slow) for sizes in (
        (64, 4, 40), (256, 16, 22), (256, 1, 140), (256, 5, 50)))])
def test_a_beat_in_two_cycles(maximum, beats, rows):
    """Latencies are those of the block; the first eight rows may settle into their turns."""
    dut = made(RowOptimizer, preset("tiny").with_fields(max_dimension=maximum))
    items = beats_in(*random_rows(rows, 16 * beats, beats))
    longest = 100 if maximum == 16 else 8 * beats + 107

    async def bench(ctx):
        for mode in (SGD, ADAGRAD):
            await settings(dut, mode, 16 * beats)(ctx)
            sent, came = await _stream(ctx, dut, items)
            assert sent[-1] - sent[0] == 2 * (len(items) - 1), "in"
            # If rows may have several slices, slices of one row take turns too.
            settled = 8 * beats if mode == ADAGRAD and maximum > 16 else 0
            assert came[-1] - came[settled] == 2 * (len(items) - 1 - settled), "out"
            latencies = {after - before for before, after in zip(sent, came)}
            if mode == SGD:
                assert latencies == {max(2 * beats + 14, 18)}
            else:
                assert longest - 7 * (maximum > 16) <= max(latencies) <= longest
        assert ctx.get(dut.counters.stall_in) == ctx.get(dut.counters.stall_out) == 0

    simulate(powered_up(dut), bench)


def test_what_waits_for_the_output_is_not_lost():
    """Rows of a beat fill the places of halves."""
    dut, rows = made(RowOptimizer, preset("tiny").with_fields(max_dimension=16)), 100
    given, taken = random_rows(rows, 16, 1), []

    async def bench(ctx):
        await settings(dut, SGD, 16)(ctx)
        await sender(dut.i, beats_in(*given))(ctx)

    async def late(ctx):
        while ctx.get(dut.counters.stall_in) < 8:
            await ctx.tick()
        await receiver(dut.o, taken, rows)(ctx)

    simulate(powered_up(dut), bench, late, limit=2000)
    assert taken == beats_out(*updated(SGD, *given))


@pytest.mark.thorough
def test_an_unfinished_row_is_idle():
    """Neither mode moves anything for it, and nothing depends on how long it waited."""
    dut = made(RowOptimizer, preset("tiny"))
    rows = random_rows(3, 64, 4)
    items = beats_in(*rows)

    async def bench(ctx):
        for mode in (ADAGRAD, SGD):
            latencies = []
            for wait in (70, 171):
                taken = []
                await settings(dut, mode, 64)(ctx)
                await sender(dut.i, items[:6])(ctx)
                assert not ctx.get(dut.idle)
                await receiver(dut.o, taken, 4)(ctx)
                for _ in range(wait):
                    await ctx.tick()
                assert ctx.get(dut.idle) and not ctx.get(dut.o.valid)
                sent, came = await _stream(ctx, dut, items[6:])
                latencies.append((sent, came))
            assert latencies[0] == latencies[1]
            for _ in range(4):
                await ctx.tick()
            assert ctx.get(dut.idle)

    simulate(powered_up(dut), bench)


def test_parameters_are_checked():
    with pytest.raises(TypeError, match="config must be a NicConfig, not 64"):
        RowOptimizer(64)
    with pytest.raises(TypeError, match="id_bits must be an integer, not '8'"):
        RowOptimizer(preset("tiny"), id_bits="8")
    with pytest.raises(ValueError, match="id_bits must be between 1 and 64, not 65"):
        RowOptimizer(preset("tiny"), id_bits=65)
