"""Mapped netlists, written by hand in Yosys's JSON form."""


def cell(kind, inputs, outputs):
    connections = {**inputs, **outputs}
    return {"type": kind, "connections": connections, "port_directions": {
        port: "output" if port in outputs else "input" for port in connections}}


def netlist(cells, names=None, **ports):
    return {"cells": cells, "ports": {
        name: {"direction": direction, "bits": bits} for name, (direction, bits) in ports.items()},
        "netnames": {name: {"bits": bits} for name, bits in (names or {}).items()}}
