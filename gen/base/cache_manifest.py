"""Manifest of a cache entry: names, sizes and SHA-256 of its files, by which it is known whole."""

import hashlib
import json
from pathlib import Path

__all__ = ["MANIFEST", "is_whole", "write_manifest"]

MANIFEST = "manifest.json"
SCHEMA = "embernic/cache/1"
_MOST_BYTES = 1 << 24


def write_manifest(folder: Path, key: str) -> None:
    """Write the manifest of the files in ``folder``, the entry ``key``."""
    text = json.dumps(_describe(folder, key), indent=1)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def is_whole(folder: Path, key: str) -> bool:
    """Return whether ``folder`` has the files of its manifest, unchanged and no others."""
    try:
        if (folder / MANIFEST).stat().st_size > _MOST_BYTES:
            return False
        stated = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        # The sizes first: a damaged file may be of any size.
        sizes = {name: about["bytes"] for name, about in stated["files"].items()}
        if sizes != {path.relative_to(folder).as_posix(): path.stat().st_size
                     for path in _files(folder)}:
            return False
        return stated == _describe(folder, key)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return False


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*"))
            if path.is_file() and path != folder / MANIFEST]


def _describe(folder: Path, key: str) -> dict:
    files = {}
    for path in _files(folder):
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        files[path.relative_to(folder).as_posix()] = {
            "bytes": path.stat().st_size, "sha256": sha256}
    return {"schema": SCHEMA, "key": key, "files": files}
