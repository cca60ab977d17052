"""What the environment tells the processes that a PyTorch program begins."""

import json
from dataclasses import asdict

from sim.torch.options import TorchOptions
from sim.torch.processes.link import Address

__all__ = ["from_environment", "to_environment"]


def to_environment(options: TorchOptions, hub: Address) -> str:
    """Return the options of a program and where its hub is, as text."""
    host, port, key = hub
    given = asdict(options)
    del given["timed"]
    return json.dumps({"options": given, "hub": [host, port, key.hex()]})


def from_environment(text: str) -> tuple[TorchOptions, Address]:
    """Return what :func:`to_environment` was given."""
    given = json.loads(text)
    options, (host, port, key) = given["options"], given["hub"]
    options["settings"] = tuple(options["settings"])
    return TorchOptions(**options), (host, port, bytes.fromhex(key))
