"""Memories of the SmartNIC."""

from .ram import Ram

__all__ = ["Ram"]
