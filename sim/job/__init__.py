"""What a command is asked to do: workload, simulation, outputs, settings, faults."""
