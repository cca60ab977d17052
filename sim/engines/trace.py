"""Trace files: take the VCD text that engines write, and save it as VCD or FST."""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Protocol

from sim.engines.trace_fst import FstWriter

__all__ = ["SUFFIXES", "TraceFile", "TraceSink"]

SUFFIXES = (".fst", ".vcd")
"""Suffixes of trace files."""

_END = b"$enddefinitions"
_FIELD = re.compile(rb"(\$var +\S+ +\d+ +\S+ +)\\")
_STRING = re.compile(rb"\$var +string +\d+ +(\S+) ")


class TraceSink(Protocol):
    """The receiver of the VCD text that an engine writes."""

    def write(self, text: bytes) -> object:
        """Take the next piece of text. A piece may end anywhere."""
        ...


class TraceFile:
    """A file of waveforms, VCD or FST by its suffix; a :class:`TraceSink`.

    Parameters
    ----------
    path: the file, which is replaced.
    scopes: names of the scopes around the design in the engine's text, outermost first. The single
        scope ``name`` replaces all of them, or only the innermost if the outer scopes have other
        contents.
    strings: whether values in the text may be words (enumerations). FST stores a word as a named
        number, and all names are known only at the end.

    ``OSError`` if the file cannot be written.
    """

    def __init__(self, path: str, scopes: tuple[str, ...], name: str, strings: bool = False):
        if Path(path).suffix not in SUFFIXES:
            raise ValueError(f"waves must end in {' or '.join(SUFFIXES)}, not {path!r}")
        self.path = path
        self._scopes = [scope.encode() for scope in scopes]
        self._name = name.encode()
        self._header: bytes | None = b""
        self._closed = False
        is_fst = path.endswith(".fst")
        self._file: FstWriter | IO[bytes] = (
            FstWriter(path) if is_fst else open(path, "wb"))  # noqa: SIM115
        self._spool = (
            tempfile.TemporaryFile() if is_fst and strings else None)  # noqa: SIM115

    def write(self, text: bytes) -> None:
        """Add ``text``; ignored once the file is closed."""
        if self._closed:
            return
        if self._header is not None:
            self._header += text
            if _END not in self._header:
                return
            text, self._header = self._renamed(self._header), None
        self._put(text)

    def close(self) -> None:
        """Complete the file. A second call has no effect."""
        if self._closed:
            return
        self._closed = True
        spool, self._spool = self._spool, None
        if spool is not None:
            with spool:
                for text in _numbered(spool):
                    self._put(text)
        try:
            self._file.close()
        except OSError as error:
            raise self._named(error) from None

    def _put(self, text: bytes) -> None:
        try:
            (self._spool or self._file).write(text)
        except OSError as error:
            raise self._named(error) from None

    def _named(self, error: OSError) -> OSError:
        if error.errno is None:
            return error
        return OSError(error.errno, f"waves cannot be written: {error.strerror}", self.path)

    def _renamed(self, header: bytes) -> bytes:
        """Return the definitions with the design's scope and fields renamed."""
        scopes = [rb"\$scope\s+\w+\s+" + re.escape(scope) + rb"\s+\$end" for scope in self._scopes]
        named = b"$scope module " + self._name + b" $end"
        header, found = re.subn(rb"\s+".join(scopes), named, header, count=1)
        if found:
            for _ in scopes[1:]:
                before, _, after = header.rpartition(b"$upscope $end")
                header = before.rstrip(b" ") + after.lstrip(b"\n")
        else:  # the outer scopes have other contents
            header = re.sub(scopes[-1], named, header, count=1)
        return _FIELD.sub(rb"\1", header)


def _numbered(spool: IO[bytes]) -> Iterator[bytes]:
    """Yield the text in ``spool`` behind definitions of the words that its variables take."""
    words: dict[bytes, dict[bytes, None]] = {}
    spool.seek(0)
    for line in spool:
        if line.startswith(_END):
            break
        declared = _STRING.search(line)
        if declared:
            words[declared[1]] = {}
    for line in spool:
        if line[:1] == b"s":
            word, code = line[1:].split()
            words[code][word] = None
    for code, taken in words.items():
        if taken:
            yield b" ".join((b"$ember_enum", code, *taken, b"$end\n"))
    spool.seek(0)
    while text := spool.read(1 << 16):
        yield text
