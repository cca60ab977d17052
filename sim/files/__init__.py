"""Output files of commands. A file is complete at every moment, even if the command is
interrupted."""
