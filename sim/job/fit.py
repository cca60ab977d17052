"""The NIC that a run builds, and checks of the model and the cluster against its sizes."""

from collections.abc import Mapping
from math import inf

from host.dlrm.codecs import CODECS
from host.dlrm.formats import in_lanes, longest
from host.model import Model
from host.placement.shard import ShardPlan
from host.timing.network import NetworkProfile
from host.toml.profile import load_profile
from host.wire.indices import MOST_INDICES
from rtl.config import PRESETS, NicConfig
from rtl.formats import BEAT_BYTES, RECORDS_PER_BEAT
from sim.job.pools import segments_needed
from sim.job.settings import Runtime
from sim.job.workload import Workload

__all__ = ["check_fit", "check_slots", "check_units", "check_wire", "config_to_build", "decodes",
           "divides_by_table", "fitting_nic", "format_inside", "preset_of", "sizes_beyond"]


def preset_of(dimension: int) -> str:
    """Return the preset of the NICs for vectors of ``dimension`` values."""
    return "kaggle" if dimension <= PRESETS["kaggle"].max_dimension else "terabyte"


def sizes_beyond(config: NicConfig, wanted: Mapping[str, int]) -> tuple[str, ...]:
    """Return ``field=value`` for each size in ``wanted`` that exceeds the size of ``config``.

    Hold buffer and segments of bags get a power of two. Raises as `check_slots` does.
    """
    check_slots(wanted.get("hold_vectors", 0) // 2)
    powers = ("hold_vectors", "bag_segments")
    return tuple(f"{name}={_power(size) if name in powers else size}"
                 for name, size in wanted.items() if size > getattr(config, name))


def check_slots(slots: int) -> None:
    """Raise ``ValueError`` if no hold buffer has room for two samples of ``slots`` slots."""
    most = NicConfig.most_hold_vectors // 2
    if slots > most:
        raise ValueError(f"slots of a sample must be at most {most}, half the largest "
                         f"hold_vectors of a NIC, not {slots!r}: pool tables at their owner, copy "
                         f"tables to all nodes, or shorten bags")


def _power(least: int) -> int:
    return 1 << (least - 1).bit_length()


def fitting_nic(config: NicConfig, model: Model, runtime: Runtime, workload: Workload,
                plan: ShardPlan | None = None) -> NicConfig:
    """Return the NIC to build, see `config_to_build`. Raises as `check_fit` does."""
    config = config_to_build(config, model, runtime, workload, plan)
    check_fit(config, model, runtime, workload)
    return config


def config_to_build(config: NicConfig, model: Model, runtime: Runtime, workload: Workload,
                    plan: ShardPlan | None = None) -> NicConfig:
    """Return ``config`` without its dot units if the run does not use them, and with ``owner_bags``
    if tables of ``plan`` pool at their owner: as many as lookups may wait for other nodes, within
    64 and 1,024, and no more than the network's queues hold (`_held_by_queue`); with at least
    `_BAG_BEATS` beats of credit per such bag; and with larger ``bag_segments`` if samples need
    them. ``short_vectors`` is true if NICs convert vectors, and ``code_vectors`` for int8. If NICs
    find repeats, ``repeat_words`` and ``repeat_vectors`` have room for the bags of a sample.

    Dot units take most of the time of a build and of a simulated cycle. Each size stays where the
    settings give it.
    """
    given = {setting.partition("=")[0].strip() for setting in workload.settings}
    if "dot_units" not in given and not (runtime.interaction and model.interaction == "dot"):
        config = config.with_fields(dot_units=0)
    if "short_vectors" not in given and decodes(workload.wire, runtime):
        config = config.with_fields(short_vectors=True)
    if "code_vectors" not in given and decodes(workload.wire, runtime) and _coded(workload.wire):
        config = config.with_fields(code_vectors=config.short_vectors)
    if plan is not None and plan.pools_at_owner:
        if "owner_bag_beats" not in given:
            config = config.with_fields(owner_bag_beats=max(
                config.owner_bag_beats, _credit_beats(config, workload)))
        if "owner_bags" not in given:
            config = config.with_fields(owner_bags=max(64, min(
                1024, config.remote_in_flight, _held_by_queue(config, model, workload))))
        if not config.owner_bags:
            raise ValueError("owner_bags must be above 0 for tables that pool at their owner, "
                             "not 0")
        needed = _power(min(segments_needed(model, workload, plan), config.most_bag_segments))
        if "bag_segments" not in given and needed > config.bag_segments:
            config = config.with_fields(bag_segments=needed)
    if workload.repeats == "nic":
        config = _comparing(config, model, given, plan)
    return config


def _comparing(config: NicConfig, model: Model, given: set[str],
               plan: ShardPlan | None) -> NicConfig:
    """Return ``config`` with the comparison of bags, at sizes not in ``given``."""
    if plan is None or not plan.pools_at_owner:
        raise ValueError("repeats must be send, neighbours or indices, not 'nic', without tables "
                         "that pool at their owner: use --pool owner")
    sizes = {"repeat_words": min(NicConfig.most_repeat_words,
                                 RECORDS_PER_BEAT * config.bag_segments),
             "repeat_vectors": min(NicConfig.most_repeat_vectors, max(2, model.tables))}
    config = config.with_fields(
        **{name: size for name, size in sizes.items() if name not in given})
    if not config.repeat_words:
        raise ValueError("repeat_words must be above 0 for repeats nic, not 0")
    return config


_BAG_BEATS = 4
"""Beats of bags that requesters may send ahead for each bag that waits for a GPU. With 1,024 bags,
7/8 of 4,096 beats are 18 us at 100 Gb/s, longer than a bag takes to the GPU and its vector back:
the network is the bottleneck of many senders to one owner. An UltraRAM is as deep."""


def _credit_beats(config: NicConfig, workload: Workload) -> int:
    """Return `_BAG_BEATS` beats for each bag that may wait for a GPU, the largest power of two that
    takes no more than half of a queue of the switch."""
    beats = _BAG_BEATS * min(1024, config.remote_in_flight)
    network = load_profile(workload.network, NetworkProfile, field="network")
    if network.queue_bytes is not None:
        beats = min(beats, network.queue_bytes // 2 // BEAT_BYTES)
    return 1 << beats.bit_length() >> 1


def _held_by_queue(config: NicConfig, model: Model, workload: Workload) -> float:
    """Return how many vectors may be under way to a node with pooled bags: the largest power of two
    that a queue of the switch holds, beside the bags that other nodes send the node; infinite
    without such queues. At worst, each vector is in a frame of its own, with a beat of header and a
    beat of tags."""
    network = load_profile(workload.network, NetworkProfile, field="network")
    if network.queue_bytes is None:
        return inf
    vector = 4 * in_lanes(model, workload.wire).width + 2 * BEAT_BYTES + network.overhead_bytes
    room = network.queue_bytes - BEAT_BYTES * config.owner_bag_beats
    return 1 << max(0, room // vector).bit_length() >> 1


def decodes(wire: str, runtime: Runtime) -> bool:
    """Return whether NICs convert vectors in format ``wire`` to float32. With unique delivery, the
    GPU converts them."""
    return wire != "float32" and runtime.deliver != "unique"


def _coded(wire: str) -> bool:
    """Return whether vectors in format ``wire`` have codes with scales and biases."""
    return CODECS[wire].bits < 16


def format_inside(wire: str, runtime: Runtime) -> str:
    """Return the format of the longest vectors inside NICs if GPUs send format ``wire``."""
    return "float32" if decodes(wire, runtime) else wire


def divides_by_table(config: NicConfig, model: Model, runtime: Runtime) -> bool:
    """Return whether NICs make the means of ``model`` although other tables pool to sums.

    Otherwise hosts divide the sums, see :func:`host.dlrm.dlrm.divided`, as they do with row blocks.
    """
    return bool(config.owner_bags and model.poolings and not model.first_rows) and (
        runtime.deliver != "unique")


def check_fit(config: NicConfig, model: Model, runtime: Runtime, workload: Workload) -> None:
    """Raise ``ValueError`` if the model, the nodes or the mini-batches in flight exceed the NIC's
    sizes."""
    check_wire(workload.wire, runtime, training=config.training)
    if workload.host_repeats != "send" and runtime.interaction:
        raise ValueError(f"repeats must be send or nic with interaction, not "
                         f"{workload.repeats!r}: the NIC needs all bags of a sample")
    if workload.own_bags != "nic" and runtime.interaction:
        raise ValueError(f"own_bags must be nic with interaction, not {workload.own_bags!r}: the "
                         f"NIC needs all bags of a sample")
    if workload.nodes > config.nodes:
        raise ValueError(f"nodes must be at most {config.nodes} for config {config.name}, "
                         f"not {workload.nodes!r}")
    if runtime.completions and workload.in_flight > config.completion_slots:
        raise ValueError(f"in_flight must be at most {config.completion_slots}, the "
                         f"completion_slots of the NIC, not {workload.in_flight!r}")
    if model.tables > config.tables:
        raise ValueError(f"tables of the model must be at most {config.tables} for config "
                         f"{config.name}, not {model.tables!r}")
    if decodes(workload.wire, runtime) and not config.short_vectors:
        raise ValueError(f"short_vectors must be true with wire {workload.wire} and deliver "
                         f"{runtime.deliver}, not {config.short_vectors!r}: the NIC adds float32")
    if decodes(workload.wire, runtime) and _coded(workload.wire):
        if not config.code_vectors:
            raise ValueError(f"code_vectors must be true with wire {workload.wire} and deliver "
                             f"{runtime.deliver}, not {config.code_vectors!r}: the NIC converts "
                             f"16-bit values only")
        if len(set(model.table_dimensions)) > 1:
            raise ValueError(f"wire must be float32, float16 or bfloat16 for tables of different "
                             f"dimensions with deliver {runtime.deliver}, not {workload.wire!r}: "
                             f"the NIC has one place for scales; or use --set deliver=unique")
    inside = format_inside(workload.wire, runtime)
    if in_lanes(model, inside).width > config.max_dimension:
        most = longest(config.max_dimension, inside)
        raise ValueError(f"dimension must be at most {most} for config {config.name}, "
                         f"not {max(model.table_dimensions)!r}")
    if model.tables > config.sample_slots:
        raise ValueError(f"hold_vectors must be at least {2 * model.tables}, twice the slots of a "
                         f"sample of {model.tables} tables, not {config.hold_vectors!r}")
    if runtime.interaction:
        check_units(config, model)
    if runtime.interaction and model.interaction == "dot":
        vectors = model.tables + 1
        if vectors > config.interaction_vectors:
            raise ValueError(f"interaction_vectors must be at least {vectors}, the dense vector "
                             f"and one of each of {model.tables} tables, "
                             f"not {config.interaction_vectors!r}")


def check_wire(wire: str, runtime: Runtime, slots: int = 0, *, training: bool = False) -> None:
    """Raise ``ValueError`` unless NICs leave vectors in format ``wire`` unread or can convert them
    to float32, if it is not float32.

    slots: of the share with the most slots. training: whether the NICs train.
    """
    if wire == "float32":
        return
    if decodes(wire, runtime) and training:
        field, wanted = ("interaction", False) if runtime.interaction else ("deliver", "unique")
        raise ValueError(f"{field} must be {str(wanted).lower()} with wire {wire}, not "
                         f"{getattr(runtime, field)!r}: NICs that train add float32 only; use "
                         f"--set {field}={str(wanted).lower()} or wire float32")
    if runtime.row_reads:
        raise ValueError(f"row_reads must be false with wire {wire}, not True: the GPU converts "
                         f"rows; use row_reads=false or wire float32")
    if slots > MOST_INDICES:
        raise ValueError(f"slots of a share must be at most {MOST_INDICES} with wire {wire}, not "
                         f"{slots!r}: use a smaller mini-batch or wire float32")


def check_units(config: NicConfig, model: Model) -> None:
    """Raise ``ValueError`` if NICs cannot compute the interaction of ``model``: its tables differ,
    or it needs dots and the NIC has no dot units.

    NICs with ``owner_bags`` pool each table in its own way.
    """
    if model.slices:
        option = "blocks" if model.first_rows else "columns"
        raise ValueError(f"{option} must be left out with interaction=true: the GPU joins the "
                         f"slices of a vector")
    if model.uneven or (model.poolings and not config.owner_bags):
        raise ValueError("interaction must be false for tables of different dimensions or "
                         "poolings, not True: NICs send sums of padded vectors, which hosts "
                         "complete; only NICs with owner_bags make the means of some tables")
    if model.interaction == "dot" and not config.dot_units:
        raise ValueError(f"dot_units must be at least 1 for the interaction dot, "
                         f"not {config.dot_units!r}")
