"""Memories of the SmartNIC."""

from rtl.memory.axi4 import HBM_CHANNELS, MemoryMaster, axi4_master
from rtl.memory.ram import Ram
from rtl.memory.sweep import SWEPT, report_swept, sweep

__all__ = ["HBM_CHANNELS", "SWEPT", "MemoryMaster", "Ram", "axi4_master", "report_swept", "sweep"]
