"""One NIC for the simulator: its build, registers, packets at the ports, and stalls."""
