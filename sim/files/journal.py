"""A journal of results: each row is written to disk before the next one is begun.

The file is valid JSON at any moment: ``{"schema", "complete", "request", "rows": [{"name", …}, …],
…}``. ``complete`` is false until :meth:`Journal.finish`, which adds the fields of the whole
result. Rows of an unfinished file have a checksum, ``sha256``.

What a later call with the same file does:

=====================================  ============================================================
the file                               the call
=====================================  ============================================================
unfinished, same request               keeps its rows and resumes after them
unfinished, another request            is refused, so that no finished row is lost by mistake
complete                               starts afresh; the file stays until the first new row
anything else, or none                 starts afresh, likewise
=====================================  ============================================================

A request is the same only if the code is the same too (:mod:`sim.files.identity`): rows of two
versions are never mixed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType, TracebackType

from gen.base.files import write_whole
from host.reading import read_regular
from sim.files.identity import sources_hash
from sim.files.locks import locked
from sim.files.outputs import MOST_RESULTS

__all__ = ["Journal"]

_OWN = ("schema", "complete", "request", "rows", "sha256")


class Journal:
    """The results of one command, saved as they are finished.

    ::

        with Journal(path, SCHEMA, {"config": "kaggle"}) as journal:
            for name in names:
                if name not in journal.finished:
                    journal.add(name, measure(name))
            result = journal.finish({"total": 3})

    Inside ``with``, an interrupt gets a note that says how to resume; :func:`sim.cli.main.main`
    prints it.

    Parameters
    ----------
    path: the file. With None or ``-`` nothing is saved; ``-`` prints the whole result at the end.
    schema: name and version of the result.
    request: the request, as plain values; a hash of the sources is added to it.
    field: the user's name for ``path``, for messages.

    Raises
    ------
    ValueError
        The file holds unfinished results of another request, or is damaged, or another process
        writes it. It is left as it is.
    OSError
        The file cannot be read or written.
    """

    def __init__(self, path: str | None, schema: str, request: Mapping[str, object],
                 field: str = "json"):
        self._path = path
        self._keeps = path not in (None, "-")
        # Through JSON, so that it compares equal to the request read back from the file.
        self._head = {"schema": schema, "complete": False,
                      "request": json.loads(_text({**request, "sources": sources_hash()}))}
        self._rows: dict[str, dict] = {}
        self._lock = ExitStack()
        self._lock.enter_context(locked({field: path}))
        try:
            if self._keeps:
                self._rows = _unfinished_rows(str(path), self._head, field)
        except BaseException:
            self._lock.close()
            raise
        self.resumed = len(self._rows)
        """Rows that an earlier call had finished."""

    @property
    def finished(self) -> Mapping[str, dict]:
        """The finished rows by name, in the order in which they were finished."""
        return MappingProxyType(self._rows)

    def add(self, name: str, row: Mapping[str, object]) -> None:
        """Save a finished row; it is on disk when this returns.

        ``ValueError`` when the name is taken, or when ``row`` holds another ``name`` or a value
        that JSON cannot represent.
        """
        if name in self._rows or row.get("name", name) != name:
            raise ValueError(f"name must be new and that of the row, not {name!r}")
        rows = self._rows | {name: json.loads(_text({"name": name, **row}))}
        if self._keeps:
            kept = list(rows.values())
            self._write(self._head | {"sha256": _checksum(kept), "rows": kept})
        self._rows = rows

    def finish(self, extra: Mapping[str, object] | None = None) -> dict:
        """Return the whole result, with ``extra`` beside the rows, and write it as complete.

        ``ValueError`` when ``extra`` has a member that the journal writes itself.
        """
        clash = [name for name in extra or () if name in _OWN]
        if clash:
            raise ValueError(f"extra must not hold {clash[0]!r}, which the journal writes itself")
        result = self._head | {"complete": True, **(extra or {}),
                               "rows": list(self._rows.values())}
        if self._keeps:
            self._write(result)
        elif self._path == "-":
            sys.stdout.write(_text(result))
            sys.stdout.flush()
        return result

    def describe_resuming(self) -> str:
        """Return how a user resumes a command that ended before :meth:`finish`."""
        if not self._keeps:
            return ("finished rows are saved only with --json FILE; the same command then "
                    "resumes after them")
        if not self._rows:
            return "no row was finished"
        return (f"{self._path} holds the {len(self._rows)} finished rows; the same command "
                f"resumes after them")

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 _: TracebackType | None) -> None:
        self._lock.close()
        # Only interrupts and exits: an error says what is wrong, and resuming may meet it again.
        if error is not None and not isinstance(error, Exception):
            error.add_note(self.describe_resuming())

    def _write(self, whole: dict) -> None:
        write_whole(str(self._path), _text(whole))


def _checksum(rows: list[dict]) -> str:
    return sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()


def _text(value: object) -> str:
    return json.dumps(value, indent=1, allow_nan=False) + "\n"


def _unfinished_rows(path: str, head: dict, field: str) -> dict[str, dict]:
    """Return the rows to resume after; none where the file is not an unfinished journal."""
    if not Path(path).is_file():
        return {}
    text = read_regular(path, MOST_RESULTS)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict) or found.get("complete") is not False:
        return {}
    other = _difference(found, head)
    if other is None:
        rows = found.get("rows")
        if isinstance(rows, list) and all(
                isinstance(row, dict) and isinstance(row.get("name"), str) for row in rows):
            if found.get("sha256") != _checksum(rows):
                raise ValueError(f"{field} {path} is damaged: its rows have another SHA-256 than "
                                 f"it states; name another file, or delete it")
            return {row["name"]: row for row in rows}
        other = "rows without names"
    raise ValueError(f"{field} {path} holds unfinished results of another request ({other}): ask "
                     f"for that again, name another file, or delete it")


def _difference(found: dict, head: dict) -> str | None:
    """Return how an unfinished file differs from the current request, or None."""
    if found.get("schema") != head["schema"]:
        return f"schema {found.get('schema')!r}, not {head['schema']!r}"
    before, now = found.get("request"), head["request"]
    if not isinstance(before, dict):
        return "no request"
    for name in (*now, *before):
        if name != "sources" and before.get(name) != now.get(name):
            return f"{name} was {before.get(name)!r}, now {now.get(name)!r}"
    if before.get("sources") != now["sources"]:
        return "made by other sources of EmberNIC or other versions of its packages"
    return None
