"""Memories of the SmartNIC."""

from .ram import Ram
from .sweep import sweep

__all__ = ["Ram", "sweep"]
