"""A minimal cache with over-approximations of its tag pipeline and its scatter lists."""

from collections.abc import Callable

from amaranth.hdl import C, Signal, Value

from rtl.cache.cache import EmbeddingCache
from rtl.cache.miss_table import MissTable
from rtl.cache.resolver import Resolver
from rtl.cache.scatter_list import ScatterList
from rtl.cache.vectors import VectorStore
from tests.formal.bench import Bench
from tests.formal.rows import any_tags
from tests.formal.waiting import any_lists
from tests.formal.wires import ShortQueue, Wires
from tests.mutants import variant

__all__ = ["IDS", "fetched", "small_cache"]

IDS = 2


def small_cache(bench: Bench, *edits: tuple[str, str, str], eager: Value | None = None,
                lists: bool = True, updated: bool = False) -> Callable[..., EmbeddingCache]:
    """Return a function that makes the cache and ignores the sizes in its arguments.

    The cache has one row, two fetches in flight, two waiting lookups and vectors of one bit; a
    waiter is served after each hit. ``bench`` gets the assumptions and statements that connect this
    proof with the proofs of the tag pipeline and the scatter lists.

    edits: class, old text, new text.
    eager: the tag pipeline decides as soon as it can.
    lists: False keeps the real scatter lists.
    updated: the rows of the cache are updated; adds the statement that no row is pending once the
    cache has settled.
    """
    def edited(part: type, **names: object) -> type:
        return variant(part, *(edit[1:] for edit in edits if edit[0] == part.__name__), **names)

    tags, allowed, expected, pending = any_tags(bench, 1, eager, updated=updated)
    waiting = ScatterList
    bench.always("rows_expected", expected)
    if lists:
        waiting, may, asked = any_lists(bench, IDS, 2)
        allowed = allowed & may
        bench.always("lists_expected", asked)
    bench.assume(allowed)
    store = edited(VectorStore, SkidBuffer=Wires, CreditQueue=ShortQueue, HITS_AHEAD=1)
    cache = edited(EmbeddingCache, SkidBuffer=Wires, VectorStore=store, TagPipeline=tags,
                   ScatterList=waiting, MissTable=edited(MissTable),
                   Resolver=edited(Resolver, CreditQueue=ShortQueue))

    def make(key_bits: int, meta_shape, **_sizes) -> EmbeddingCache:
        made = cache(key_bits, meta_shape, rows=2, ways=1, in_flight=IDS, waiters=2,
                     vector_beats=1, store_bits=1, hash_key=lambda key: C(0, 32),
                     updated=updated)
        if updated:
            bench.always("settled", ~made.settled | ~pending)
        return made

    return make


def fetched(bench: Bench, dut, is_one: Callable[[Value], Value],
            eager: Value | None = None) -> Signal:
    """Answer the misses of ``dut``: any outstanding fetch at any time, or at once while ``eager``.

    The vector of a key is the bit ``is_one`` of the key. Return the outstanding fetches.
    """
    m = bench.m
    miss = dut.misses.payload
    asked = bench.sink(dut.misses, "misses", miss.id[0], eager)
    busy, one, id_ = Signal(IDS), Signal(IDS), Signal(range(IDS))
    picked, fill = bench.free(range(IDS), "id"), bench.free(name="fill")
    # While ``eager``, also any outstanding fetch.
    m.d.comb += id_.eq(picked if eager is None else
                       picked ^ (eager & ~busy.bit_select(picked, 1)))
    m.d.comb += [
        dut.fills.valid.eq((fill if eager is None else fill | eager) & busy.bit_select(id_, 1)),
        dut.fills.payload.id.eq(id_), dut.fills.payload.last.eq(1),
        dut.fills.payload.data.eq(one.bit_select(id_, 1))]
    with m.If(dut.fills.valid):
        m.d.sync += busy.bit_select(id_, 1).eq(0)
    with m.If(asked):
        m.d.sync += [busy.bit_select(miss.id[0], 1).eq(1),
                     one.bit_select(miss.id[0], 1).eq(is_one(miss.key))]
    bench.always("ids_apart", ~dut.misses.valid | ((miss.id < IDS)
                                                   & ~busy.bit_select(miss.id[0], 1)))
    return busy
