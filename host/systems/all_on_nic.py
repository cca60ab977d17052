"""System with everything on the SmartNIC (paper, section 4.3), modelled analytically."""

from dataclasses import dataclass

from host.devices.cost import Cost
from host.devices.ring import Ring
from host.systems.charge import charge
from host.systems.devices import Devices
from host.systems.nic_times import NicTimes
from host.systems.options import StepOptions
from host.systems.stage import Step
from host.systems.tables import vector_bytes
from host.systems.workload import Workload

__all__ = ["CARD_BYTES", "NIC_DSP", "PRODUCT_DSP", "SLR_DSP", "FpgaDense", "all_on_nic",
           "not_applicable"]

CARD_BYTES = 8 * 10**9
"""Bytes of HBM on the card (PG276), which must hold a node's tables."""


SLR_DSP, NIC_DSP, PRODUCT_DSP = 3_072, 903, 3
"""DSPs of an SLR of the U280, of the NIC of preset ``kaggle``, and of an exact float32 multiplier,
with subnormals: ``total`` and ``kaggle_float_multiplier`` of ``python -m gen --config kaggle
--report``."""


@dataclass(frozen=True)
class FpgaDense:
    """Multipliers that the NIC leaves free for MLPs.

    Members
    -------
    dsp: free DSPs in the NIC's SLR.
    dsp_per_product: DSPs of an exact float32 multiplier.
    clock_mhz: clock of the NIC.
    """

    dsp: int = SLR_DSP - NIC_DSP
    dsp_per_product: int = PRODUCT_DSP
    clock_mhz: float = 250.0

    def us(self, products: float) -> float:
        """Return the microseconds of ``products`` multiplications with no multiplier ever idle."""
        return products / (self.dsp // self.dsp_per_product * self.clock_mhz)


def not_applicable(w: Workload) -> str | None:
    """Return why the tables do not fit on the cards; None if they fit."""
    most = max(w.plan.rows_held()) * vector_bytes(w)
    if most <= CARD_BYTES:
        return None
    return (f"tables take {most / 1e9:.1f} GB of a node's card, which has "
            f"{CARD_BYTES / 1e9:.0f} GB")


def all_on_nic(w: Workload, d: Devices, options: StepOptions, nic: NicTimes,
               fpga: FpgaDense = FpgaDense()) -> Step:
    """Return a step without a GPU: rows in the card's HBM, MLPs on the remaining multipliers.

    The NIC fetches samples by DMA after a doorbell and returns predictions by DMA; no kernel is
    launched. MLPs cost only their multiplications, which is a lower bound. A training step costs
    three times the MLPs of a forward pass.

    nic: times of NICs whose rows are in HBM.
    """
    step = Step()
    samples = int(w.samples.max())
    bottom, top = (samples * sum(a * b for a, b in layers)
                   for layers in (w.model.bottom_layers, w.model.top_layers))
    size = float(4 * w.model.dense * samples)
    at = step.add("samples", "overhead", d.software.doorbell_us, "cpu")
    at = step.add("samples", "overhead", 2 * d.pcie.one_way_us, after=(at,))
    at = step.add("samples", "overhead", d.copies.moving_us(size), "pcie_in", after=(at,))
    lookups = at
    for phase, us in nic.phases.items():
        lookups = step.add(phase, phase, us, after=(lookups,))
    held = step.add("NIC", "embedding_lookup", min(nic.interval_us, nic.service_us), "nic",
                    after=(at,))
    at = step.add("bottom MLP", "mlp", fpga.us(bottom), "multipliers", after=(at,))
    at = step.add("interaction", "irregular", nic.interaction_us, after=(at,))
    at = step.add("top MLP", "mlp", fpga.us(top), "multipliers", after=(lookups, held, at))
    if not options.training:
        at = step.add("predictions", "overhead", d.copies.moving_us(4.0 * samples), "pcie_out",
                      after=(at,))
        step.add("predictions", "overhead", d.pcie.one_way_us + d.software.synchronize_us,
                 after=(at,))
        return step
    at = step.add("MLPs backward", "mlp", fpga.us(2 * (bottom + top)), "multipliers", after=(at,))
    rows = step.add("rows", "backward_all_to_all", nic.update_us, "nic", after=(at,))
    if options.all_reduce and w.nodes > 1:
        ring = Ring(d.nic_links, 4 * w.model.mlp_parameters)
        us = ring.moving_us + ring.turns * d.network.one_way_us
        at = charge(step, "all-reduce", "all_reduce", Cost(us, 0.0, {"link": ring.moving_us}),
                    (at,))
    step.add("MLP update", "mlp", fpga.us(w.model.mlp_parameters), "multipliers", after=(at, rows))
    return step
