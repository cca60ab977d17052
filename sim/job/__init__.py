"""Request of a command: workload, simulation, outputs, settings, faults."""
