"""What the environment tells the processes that a PyTorch program begins."""

import json
from dataclasses import asdict

from sim.torch.options import TorchOptions

__all__ = ["from_environment", "to_environment"]


def to_environment(options: TorchOptions, hub: str) -> str:
    """Return the options of a program and the path of its hub's key file as text, without the key:
    other programs print their environment."""
    given = asdict(options)
    del given["timed"]
    return json.dumps({"options": given, "hub": hub})


def from_environment(text: str) -> tuple[TorchOptions, str]:
    """Return the arguments that :func:`to_environment` was called with."""
    given = json.loads(text)
    options = given["options"]
    options["set"] = tuple(options["set"])
    return TorchOptions(**options), given["hub"]
