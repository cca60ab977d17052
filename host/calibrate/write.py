"""Writer of a profile as a TOML file."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

__all__ = ["write_profile"]


def write_profile(path: Path, profile: Any, comment: str) -> None:
    """Write a profile of plain numbers, strings and its ``source``, headed by ``comment``."""
    lines = [f"# {' '.join(comment.split())}"]
    for field in fields(profile):
        value = getattr(profile, field.name)
        if field.name == "source":
            continue
        if isinstance(value, float):
            value = float(f"{value:.6g}")
        # JSON's strings, integers, booleans and floats of this size are valid TOML.
        lines.append(f"{field.name} = {json.dumps(value, ensure_ascii=False)}")
    lines += ["", "[source]"]
    lines += [f"{name} = {json.dumps(text, ensure_ascii=False)}"
              for name, text in profile.source.items()]
    path.write_text("\n".join(lines) + "\n")
