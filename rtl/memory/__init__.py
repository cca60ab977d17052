"""Memories of the SmartNIC."""

from rtl.memory.axi4 import HBM_CHANNELS, MemoryMaster, axi4_master
from rtl.memory.ram import Ram
from rtl.memory.sweep import sweep

__all__ = ["HBM_CHANNELS", "MemoryMaster", "Ram", "axi4_master", "sweep"]
