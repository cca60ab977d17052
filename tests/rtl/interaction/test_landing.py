"""Landing check: the vectors of two sources that are written, and their addresses, at a beat per
cycle."""

import pytest

from tests.rtl.interaction.landings import REMOTE, Landing


def add_vectors(landing):
    """Reserve and mark places, and let both sources send vectors to any other place."""
    rng, places = landing.rng, landing.places
    landing.tail += rng.randrange(places - landing.tail + landing.head + 1)
    waiting = [n for n in range(landing.head, landing.tail) if n not in landing.filled]
    landing.marks += [n for n in waiting if rng.random() < 0.15]
    marked = {n % places for n in landing.marks}
    tags = [n for n in range(places) if n not in marked]
    tags += [places, places + 1, 0x8000, 0xFFFF]
    for _ in range(len(waiting) + 4):
        tag = rng.choice(waiting) % places if waiting else places
        if tag in marked or rng.random() < 0.15:
            tag = rng.choice(tags)
        length = rng.randrange(1, landing.most + 3) if rng.random() < 0.15 else landing.beats
        rng.choice(landing.sources).add(tag, landing.vector(length))


@pytest.mark.few(4)
@pytest.mark.parametrize("places, most, beats, slots, stall", [
    (64, 4, 3, 90, (0.0, 0.0)), (8, 1, 1, 100, (0.0, 0.0)), (16, 3, 2, 60, (0.0, 0.5)),
    (8, 4, 4, 60, (0.3, 0.3)), (4, 16, 16, 20, (0.6, 0.0)), (128, 1, 1, 200, (0.4, 0.1))])
def test_vectors_among_bad_ones(places, most, beats, slots, stall):
    """Through several laps, two sources at once; they often send to the same place."""
    landing = Landing(places, most, beats, stall=stall, seed=places)

    async def bench(ctx):
        while landing.head < slots:
            add_vectors(landing)
            await landing.drain(ctx, looks=0.5)
            while landing.head in landing.filled and landing.rng.random() < 0.9:
                landing.head += 1

    landing.run(bench)
    assert min(landing.seen.values()) >= 15


@pytest.mark.parametrize("remote, local, beats", [
    (True, False, 1), (True, False, 3), (False, True, 2), (True, True, 1), (True, True, 4)])
def test_one_beat_a_cycle(remote, local, beats):
    """Round the ring for laps, from each source alone, and where one fills the other's gaps."""
    landing, number = Landing(16, 4, beats, stall=(0.5 * local, 0.0), seed=beats), 100

    async def bench(ctx):
        sent = 0
        while len(landing.filled) < number:
            while landing.head in landing.filled:
                landing.head += 1
            landing.tail = landing.head + landing.places
            while sent < min(landing.tail - 4, number):
                own = local and (sent % 2 or sent > 50 or not remote)
                landing.sources[bool(own)].add(sent % landing.places, landing.vector())
                sent += 1
            await landing.tick(ctx)
        await landing.drain(ctx)

    landing.run(bench)
    assert landing.seen == {"vector_in": number, "bad": 0, "beats_in": number * beats}
    assert landing.writes == [*range(landing.writes[0], landing.writes[0] + number * beats)]


async def play(ctx, landing, tag, remote, local):
    """Send the beats of a vector of each source, given as {cycle: data}, to one place."""
    for cycle in range(12):
        for source, beats in zip(landing.sources, (remote, local)):
            if cycle in beats:
                source.beats.append((tag, beats[cycle], int(cycle == max(beats))))
        await landing.tick(ctx)
    await landing.drain(ctx)


@pytest.mark.parametrize("gap", [1, 2])
def test_local_wins_where_both_write(gap):
    """Whichever begins first, unless the other's vector is complete before."""
    landing = Landing(16, 4, 3, seed=gap)

    async def bench(ctx):
        for slot, begin in enumerate(range(10)):
            landing.tail += 1
            ours, theirs = landing.vector(), landing.vector()
            await play(ctx, landing, slot, {3 + gap * k: theirs[k] for k in range(3)},
                       {begin + k: ours[k] for k in range(3)})
            kept = [landing.store[4 * slot + k] for k in range(3)]
            assert kept == (ours if begin < (3 if gap == 1 else 7) else theirs)

    landing.run(bench)
    assert landing.seen == {"vector_in": 10, "bad": 10, "beats_in": 30}


def test_a_vector_is_refused_whole():
    """Beats whose place waits do not make up for one that came before, or was refused."""
    landing = Landing(8, 4, 3)
    remote, data = landing.sources[REMOTE], landing.vector()

    async def bench(ctx):
        # Its place is reserved only after its first beat.
        remote.beats.append((0, data[0], 0))
        await landing.drain(ctx)
        landing.tail = 8
        await play(ctx, landing, 0, {0: data[1], 1: data[2]}, {})
        # A local vector of its place comes in between, and is too short.
        await play(ctx, landing, 1, {0: data[0], 2: data[1], 8: data[2]}, {1: 7, 3: 7})
        assert landing.seen == {"vector_in": 0, "bad": 3, "beats_in": 0}
        await play(ctx, landing, 0, dict(enumerate(data)), {})
        await play(ctx, landing, 1, {}, dict(enumerate(data)))
        assert landing.seen == {"vector_in": 2, "bad": 3, "beats_in": 6}

    landing.run(bench)


def test_a_vector_does_not_reach_into_the_next_lap():
    """Its first beat came before this node's vector, its others when the place waits again."""
    landing = Landing(8, 4, 3)
    remote, data = landing.sources[REMOTE], landing.vector()

    async def bench(ctx):
        landing.tail = 8
        landing.marks += range(1, 8)
        remote.beats.append((0, data[0], 0))
        await landing.tick(ctx)
        await play(ctx, landing, 0, {}, {0: 7, 1: 7, 2: 7})
        landing.head, landing.tail = 8, 16
        await play(ctx, landing, 0, {0: data[1], 1: data[2]}, {})
        assert landing.seen == {"vector_in": 1, "bad": 1, "beats_in": 3}
        await play(ctx, landing, 0, dict(enumerate(data)), {})
        assert [landing.store[k] for k in range(3)] == data
        for slot in (8, 9, 8):
            await landing.tick(ctx, look=slot)

    landing.run(bench)


def test_vectors_during_the_sweep():
    """No place is reserved yet: they are dropped, and leave nothing behind."""
    landing = Landing(16, 4, 2)
    for tag in range(4):
        landing.sources[tag % 2].add(tag, landing.vector())

    async def bench(ctx):
        landing.tail = 4
        assert landing.seen == {"vector_in": 0, "bad": 4, "beats_in": 0}
        for tag in range(4):
            landing.sources[tag % 2].add(tag, landing.vector())
        await landing.drain(ctx, looks=0.5)
        assert landing.seen == {"vector_in": 4, "bad": 4, "beats_in": 8}

    landing.run(bench)
