"""Memories of the SmartNIC."""

from .axi4 import HBM_CHANNELS, MemoryMaster, axi4_master
from .ram import Ram
from .sweep import sweep

__all__ = ["HBM_CHANNELS", "MemoryMaster", "Ram", "axi4_master", "sweep"]
