"""Rings in GPU memory, of request lists, vectors and completions of steps; and reads of rows."""

from rtl.rings.completion import CompletionWriter
from rtl.rings.gpu_rings import GpuRings, RingPlace
from rtl.rings.list_ring import ListRing
from rtl.rings.messages import RingMessages
from rtl.rings.row_reads import RowReads
from rtl.rings.slot_length import SlotLength
from rtl.rings.step_table import StepTable
from rtl.rings.vector_ring import VectorRing

__all__ = ["CompletionWriter", "GpuRings", "ListRing", "RingMessages", "RingPlace", "RowReads",
           "SlotLength", "StepTable", "VectorRing"]
