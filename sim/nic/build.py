"""Builder of NICs: compile a configuration once, create instances, load their registers."""

import warnings
from functools import lru_cache

from amaranth.hdl import UnusedElaboratable

from host.dlrm.formats import FLOAT32, VectorFormat
from host.model import Model as Dlrm
from host.placement.shard import ShardPlan
from host.wire.packets import vectors_that_fit
from rtl.config import NicConfig, beats_of, packing_of
from rtl.formats import ValueFormat
from rtl.nic import SmartNic
from sim.engines import Engine, Model, load
from sim.job.rings import ring_registers
from sim.job.row_places import RowPlaces, row_registers
from sim.job.settings import COMPLETION_BASE, LINK_SETTINGS, MODES, Runtime
from sim.nic.registers import RegisterFile

__all__ = ["RtlNic", "nic_model", "register_values"]

# A NIC with cached Verilog is described but not elaborated.
warnings.simplefilter("ignore", UnusedElaboratable)


class RtlNic:
    """A compiled SmartNic.

    Parameters: its configuration, the name of the engine, whether its instances can be traced, and
        whether idle blocks are clock-gated, see :func:`sim.engines.load`.
    """

    def __init__(self, config: NicConfig, engine: str, traced: bool = False,
                 clock_gating: bool = True):
        self.config = config
        nic = SmartNic(config)
        self.registers = nic.registers
        self._model: Model = load(nic, f"embernic_{config.name}", engine,
                                  recipe=f"SmartNic({config!r})", traced=traced,
                                  clock_gating=clock_gating)

    def instance(self, *, skip: bool = True,
                 random_init: int | None = None) -> tuple[Engine, RegisterFile]:
        """Return a NIC just out of reset, and its registers."""
        engine = self._model.instance(skip=skip, random_init=random_init)
        return engine, RegisterFile(engine, self.registers)

    def configure(self, registers: RegisterFile, runtime: Runtime, plan: ShardPlan,
                  model: Dlrm, *, node: int, nodes: int, repeats: bool = False,
                  decoded: VectorFormat = FLOAT32) -> None:
        """Queue the register writes of node ``node`` of ``nodes`` for ``model``.

        repeats: whether the NIC finds repeated bags. decoded: see `register_values`.
        """
        values = register_values(self.config, runtime, model, node=node, nodes=nodes,
                                 by_table=bool(plan.means.any()), repeats=repeats,
                                 decoded=decoded)
        for name, value in values.items():
            registers.write(name, value)
        descriptors = (plan.descriptors(RowPlaces.of(plan, node, model.width).bases)
                       if runtime.row_reads else plan.descriptors())
        for table, words in enumerate(descriptors):
            registers.table(table, [int(word) for word in words])


def register_values(config: NicConfig, runtime: Runtime, model: Dlrm, *, node: int,
                    nodes: int, by_table: bool = False,
                    repeats: bool = False, decoded: VectorFormat = FLOAT32) -> dict[str, int]:
    """Return the register values of node ``node`` of ``nodes``, without the tables.

    by_table: whether the NIC pools each table by its descriptor.
    repeats: whether the NIC finds repeated bags.
    decoded: format of the vectors that the NIC converts; float32 if it converts none.
    """
    dimension = model.width
    share = config.lookup_beats // nodes
    return {
        "node": node, "nodes": nodes, "vector_beats": beats_of(dimension),
        "vector_packing": packing_of(dimension),
        "pooling_mean": int(model.nic_pooling == "mean"),
        "interaction_mode": MODES[model.interaction] if runtime.interaction else 0,
        "interaction_itself": int(model.interaction_itself),
        "local_cache_enable": int(runtime.local_cache),
        "local_cache_sets": runtime.local_cache_sets or config.local_cache_sets,
        "remote_cache_enable": int(runtime.remote_cache),
        "remote_cache_sets": runtime.remote_cache_sets or config.remote_cache_sets,
        "requester_merge": int(runtime.requester_merge),
        "dedupe_enable": int(runtime.dedupe),
        "request_batch": _request_batch(config, runtime, dimension),
        "request_timeout": runtime.request_timeout,
        "lookup_timeout": runtime.lookup_timeout,
        "vector_timeout": runtime.vector_timeout,
        "result_timeout": runtime.result_timeout,
        # A correct peer leaves an eighth of its share unused; a peer that exceeds its share is
        # faulty.
        "lookup_window": max(1, share - share // 8), "lookup_share": share,
    } | ({"output_queues": 1} if runtime.output_queues else {}) | _delivery_values(runtime) | (
        ring_registers(config) if runtime.gpu_rings else {}) | (
        row_registers() if runtime.row_reads else {}) | (
        {name: getattr(runtime, name) for name in LINK_SETTINGS} if config.link else {}) | (
        _bag_values(config, runtime, dimension, nodes) if config.owner_bags else {}) | (
        _value_values(decoded, dimension) if config.short_vectors else {}) | (
        {"pooling_by_table": 1} if by_table else {}) | (
        {"repeats_enable": 1} if repeats else {})


def _value_values(decoded: VectorFormat, dimension: int) -> dict[str, int]:
    """Return the register values of vectors of other values than float32."""
    width = dimension if decoded.plain else decoded.width
    form = ValueFormat[decoded.name.upper()]
    count = {"value_count": decoded.dimensions[0]} if form >= ValueFormat.INT8 else {}
    return {"value_format": form, "value_beats": beats_of(width),
            "value_packing": packing_of(width), **count}


def _request_batch(config: NicConfig, runtime: Runtime, dimension: int) -> int:
    """Return the most entries of a request list."""
    if not (runtime.gpu_rings or runtime.row_reads):
        return runtime.request_batch
    # The vectors of a list are read from one slot and sent as one packet, like the rows of a read.
    return min(runtime.request_batch, vectors_that_fit(dimension, config.host_payload_beats))


def _bag_values(config: NicConfig, runtime: Runtime, dimension: int,
                nodes: int) -> dict[str, int]:
    """Return the register values of owner pooling."""
    share = config.owner_bag_beats // nodes
    # One packet of vectors answers a list.
    most = vectors_that_fit(dimension, config.host_payload_beats)
    return {"bag_window": share - share // 8, "bag_share": share,
            "bag_timeout": runtime.bag_timeout, "bag_batch": min(runtime.bag_batch, most)}


def _delivery_values(runtime: Runtime) -> dict[str, int]:
    """Return the register values for delivery settings that differ from the reset values."""
    values = {}
    if runtime.deliver == "unique":
        values |= {"unique_delivery": 1, "index_timeout": runtime.index_timeout}
    if runtime.completions:
        values |= {"completion_flush": int(runtime.completion_flush),
                   "completion_base_low": COMPLETION_BASE & 0xFFFF_FFFF,
                   "completion_base_high": COMPLETION_BASE >> 32,
                   "step_timeout": runtime.step_timeout}
    return values


@lru_cache(maxsize=4)
def nic_model(config: NicConfig, engine: str, traced: bool = False,
              clock_gating: bool = True) -> RtlNic:
    """Return the :class:`RtlNic` of these parameters, the same object to every caller.

    Describing a NIC again takes longer than a short run of it.
    """
    return RtlNic(config, engine, traced, clock_gating)
