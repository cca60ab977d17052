"""The fault suite: networks that lose, double, reorder, corrupt and delay, and what comes of it."""
