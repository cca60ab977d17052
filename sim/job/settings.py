"""Settings of a run that ``--set`` changes, at elaboration or by register."""

from dataclasses import dataclass, fields, replace

from gen.base.settings import config_types, parse_settings
from host.dlrm.embedding import PARTIALS
from host.model import POOLINGS, Model
from rtl.config import NicConfig
from rtl.formats import InteractionMode

__all__ = ["COMPLETION_BASE", "DELIVERIES", "LINK_SETTINGS", "MODES", "Runtime", "apply_settings"]

MODES = {"dot": InteractionMode.DOT, "cat": InteractionMode.CAT}
"""Register values of the interactions that a model may have."""

DELIVERIES = ("pooled", "unique")
"""Delivery of a bag to the host: the pooled vector, or an index per key into the unique vectors of
the share."""

COMPLETION_BASE = 0x2_4000_1000
"""Address of the ring of completions in GPU memory: a multiple of its largest size."""

LINK_SETTINGS = {
    "link_delay": (0, 0xFFFF), "link_timeout_first": (1, (1 << 23) - 1),
    "link_timeout_least": (1, (1 << 23) - 1), "link_timeout_most": (1, (1 << 23) - 1),
    "link_tries": (1, 255), "link_probe_after": (1, (1 << 23) - 1)}
"""Settings of the reliable link, which are registers of their names, with their bounds."""

_ITSELF = ("true", "false", "model")


@dataclass(frozen=True)
class Runtime:
    """Register settings of every node, written before a run.

    Members
    -------
    local_cache: whether the local cache is on.
    local_cache_sets: sets of the local cache in use; 0 for all.
    remote_cache: whether the remote cache is on.
    remote_cache_sets: sets of the remote cache in use; 0 for all.
    requester_merge: whether a requester sends a key only once while it is in flight.
    dedupe: whether the dedupe table is on.
    pooling: ``sum`` or ``mean``, for all tables; ``model`` takes the model's.
    interaction: whether NICs compute the model's interaction, dot or cat, and deliver its results
        to their hosts in place of pooled vectors.
    interaction_itself: whether dots pair a vector with itself: ``true``, ``false``, or ``model``
        for the model's setting.
    deliver: ``pooled``: NICs pool the vectors of each bag. ``unique``: NICs deliver each unique
        vector of a share once, and an index per slot; the GPU pools. ``interaction`` requires
        ``pooled``.
    completions: whether a host opens each step at its NIC, and the NIC writes a completion word to
        GPU memory after the last answer. The word ends the share of the step.
    completion_flush: whether the NIC reads back from GPU memory before it writes the word.
    step_timeout: cycles from the opening of a step until it completes without its answers, and
        missing samples count as refused; 0 means never.
    gpu_rings: whether NICs write request lists to a ring in GPU memory, and read vectors from a
        ring that a resident kernel fills. Without rings, the host launches gathers.
    row_reads: whether NICs read rows from GPU memory themselves; tables must fit the BAR of the GPU
        (``bar_gib``), and ``gpu_rings`` must be false.
    request_batch: entries of a full request list to the GPU: lookups, or samples with requested
        dense vectors. With ``gpu_rings`` or ``row_reads``, at most the vectors of a packet.
    bag_batch: bags of a full list to the GPU; at most the vectors of a packet, which answers it.
    request_timeout, lookup_timeout, vector_timeout, result_timeout, index_timeout, bag_timeout,
    gradient_timeout: timeout in cycles after which a partly filled request list, lookups packet,
        vectors packet, results packet, index packet, packet of bags or packet of partial sums
        leaves; 0: at the next check, at least a cycle later. A packet of bags leaves
        when no slot left for that time, or for 4 times as long while a slot waits, or at 64 times
        that age.
    output_queues: whether lookups wait for credit in a queue per owner. A slow owner then does not
        delay lookups to other owners.
    link_delay: cycles from a packet to the LINK packet that acknowledges it, unless another packet
        does earlier.
    link_timeout_first, link_timeout_least, link_timeout_most: retransmission timeout in cycles:
        before a round trip is measured, and its bounds afterwards.
    link_tries: transmissions of a packet before its node is given up.
    link_probe_after: cycles after which a silent node gets a PROBE packet while answers are
        outstanding. The six ``link_`` settings require ``link``.
    overtake: in training, whether the queries of the next step follow directly behind the gradients
        of the current step; lookups leave for each owner as soon as that owner is done.
    local_reduction: in training, whether a node sums its gradients per row before it sends them;
        otherwise it sends every gradient.
    gradient_partials: in training, form of the sums that a node sends: ``exact``, or ``rounded`` to
        float32.
    """

    local_cache: bool = True
    local_cache_sets: int = 0
    remote_cache: bool = True
    remote_cache_sets: int = 0
    requester_merge: bool = True
    dedupe: bool = True
    pooling: str = "model"
    interaction: bool = False
    interaction_itself: str = "model"
    deliver: str = "pooled"
    completions: bool = False
    completion_flush: bool = True
    step_timeout: int = 0
    gpu_rings: bool = False
    row_reads: bool = False
    request_batch: int = 128
    request_timeout: int = 64
    lookup_timeout: int = 32
    vector_timeout: int = 64
    result_timeout: int = 64
    index_timeout: int = 64
    bag_timeout: int = 64
    bag_batch: int = 64
    output_queues: bool = False
    link_delay: int = 128
    link_timeout_first: int = 7_500
    link_timeout_least: int = 1_000
    link_timeout_most: int = 250_000
    link_tries: int = 12
    link_probe_after: int = 250_000
    overtake: bool = False
    local_reduction: bool = True
    gradient_partials: str = "exact"
    gradient_timeout: int = 64

    @property
    def partials(self) -> str:
        """The form of the sums that a node sends to others, see :mod:`host.dlrm.embedding`.

        A gradient that is sent by itself is exact.
        """
        return self.gradient_partials if self.local_reduction else "exact"

    def of_model(self, model: Model) -> Model:
        """Return ``model`` with the settings here that are not ``model``."""
        if self.pooling != "model":
            model = replace(model, pooling=self.pooling, poolings=())
        if self.interaction_itself != "model":
            model = replace(model, interaction_itself=self.interaction_itself == "true")
        return model

    def with_model(self, model: Model) -> tuple["Runtime", Model]:
        """Return these settings and ``model``, each updated from the other."""
        model = self.of_model(model)
        return replace(self, pooling="model" if model.poolings else model.pooling), model

    def stored_dimensions(self, model: Model) -> tuple[int, ...]:
        """Return the values of a row of each table in GPU memory; NICs that read rows require
        padding."""
        return (model.width,) * model.tables if self.row_reads else model.table_dimensions

    def check(self, config: NicConfig) -> None:
        """Raise ``ValueError`` for a value that the hardware of ``config`` does not have."""
        for name in ("local_cache_sets", "remote_cache_sets"):
            value, most = getattr(self, name), getattr(config, name)
            if not 0 <= value <= most:
                raise ValueError(f"{name} must be between 0 (all) and {most}, not {value!r}")
        if config.net_framing != "ethernet":
            raise ValueError("net_framing must be ethernet where packets cross a network, "
                             f"not {config.net_framing!r}, which wants a shell's UDP stack")
        if self.pooling not in ("model", *POOLINGS):
            raise ValueError(f"pooling must be model, {' or '.join(POOLINGS)}, "
                             f"not {self.pooling!r}")
        if self.interaction_itself not in _ITSELF:
            raise ValueError(f"interaction_itself must be {', '.join(_ITSELF[:-1])} or "
                             f"{_ITSELF[-1]}, not {self.interaction_itself!r}")
        if self.gradient_partials not in PARTIALS:
            raise ValueError(f"gradient_partials must be {' or '.join(PARTIALS)}, "
                             f"not {self.gradient_partials!r}")
        self._check_delivery(config)
        most = 8 * config.net_payload_beats
        if not 1 <= self.request_batch <= most:
            raise ValueError(f"request_batch must be between 1 and {most}, "
                             f"not {self.request_batch!r}")
        if not 1 <= self.bag_batch <= 0xFFFF:
            raise ValueError(f"bag_batch must be between 1 and {0xFFFF}, not {self.bag_batch!r}")
        for name in ("request_timeout", "lookup_timeout", "vector_timeout", "result_timeout",
                     "index_timeout", "bag_timeout", "gradient_timeout"):
            if not 0 <= getattr(self, name) <= 0xFFFF:
                raise ValueError(f"{name} must be between 0 and {0xFFFF}, "
                                 f"not {getattr(self, name)!r}")
        for name, (low, high) in LINK_SETTINGS.items():
            if not low <= getattr(self, name) <= high:
                raise ValueError(f"{name} must be between {low} and {high}, "
                                 f"not {getattr(self, name)!r}")

    def _check_delivery(self, config: NicConfig) -> None:
        """Raise ``ValueError`` for an invalid delivery to the host."""
        if self.deliver not in DELIVERIES:
            raise ValueError(f"deliver must be {' or '.join(DELIVERIES)}, not {self.deliver!r}")
        if self.deliver == "unique" and self.interaction:
            raise ValueError("deliver must be pooled with interaction, not 'unique': NICs deliver "
                             "results in place of vectors")
        if self.deliver == "unique" and not config.unique_keys:
            raise ValueError("unique_keys must be above 0 to deliver unique vectors, not 0")
        if self.row_reads and self.gpu_rings:
            raise ValueError("row_reads must be false with gpu_rings, not True: the resident "
                             "kernel reads rows")
        if not 0 <= self.step_timeout <= 0xFFFF_FFFF:
            raise ValueError(f"step_timeout must be between 0 and {0xFFFF_FFFF}, "
                             f"not {self.step_timeout!r}")


def apply_settings(config: NicConfig, settings: list[str]) -> tuple[NicConfig, Runtime]:
    """Apply ``field=value`` settings and return the configuration and the registers.

    ``ValueError`` names an unknown field, a value of another kind, or one out of range.
    """
    registers = {field.name: field.type for field in fields(Runtime)}
    values = parse_settings(settings, config_types() | registers)
    config = config.with_fields(**{k: v for k, v in values.items() if k not in registers})
    runtime = replace(Runtime(), **{k: v for k, v in values.items() if k in registers})
    runtime.check(config)
    return config, runtime
