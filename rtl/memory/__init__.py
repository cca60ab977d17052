"""Memories of the SmartNIC."""

from rtl.memory.axi4 import HBM_CHANNELS, MemoryMaster, axi4_master
from rtl.memory.ram import Ram
from rtl.memory.sweep import SWEPT, sweep, tell_swept

__all__ = ["HBM_CHANNELS", "SWEPT", "MemoryMaster", "Ram", "axi4_master", "sweep", "tell_swept"]
