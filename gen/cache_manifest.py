"""Manifest of a cache entry: names, sizes and SHA-256 of its files, by which it is known whole."""

import hashlib
import json
from pathlib import Path

__all__ = ["MANIFEST", "is_whole", "write_manifest"]

MANIFEST = "manifest.json"
SCHEMA = "embernic/cache/1"


def write_manifest(folder: Path, key: str) -> None:
    """Write the manifest of the files in ``folder``, the entry ``key``."""
    text = json.dumps(_describe(folder, key), indent=1)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def is_whole(folder: Path, key: str) -> bool:
    """Return whether ``folder`` has the files of its manifest, unchanged and no others."""
    try:
        stated = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return stated == _describe(folder, key)
    except (OSError, ValueError):
        return False


def _describe(folder: Path, key: str) -> dict:
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path != folder / MANIFEST:
            with path.open("rb") as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            files[path.relative_to(folder).as_posix()] = {
                "bytes": path.stat().st_size, "sha256": sha256}
    return {"schema": SCHEMA, "key": key, "files": files}
