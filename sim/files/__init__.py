"""Files that a command writes: whole at every moment, even when it is interrupted."""
