"""What a NIC shows of itself: event counters, the streams by name, overdue answers."""
