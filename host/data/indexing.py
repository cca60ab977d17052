"""Mapping from a category of Criteo to a row of its table."""

from typing import Any

from host.data.datasets import EXACT, FORMATS, known_format

__all__ = ["INDEXES", "INDEX_HELP", "format_of"]

INDEXES = ("hash", "exact")
INDEX_HELP = ("Mapping from a category of Criteo to a row. hash: its hash modulo the rows of its "
              "table; exact: its number in order of first occurrence, as in "
              "facebookresearch/dlrm.")
"""Help text of the option."""


def format_of(options: Any) -> str | None:
    """Return the format of the files ``data`` of options, whose categories have an ``index``.

    With ``hash``: ``format`` unchanged; None guesses it. With ``exact``: the format
    ``criteo-exact``.

    Raises
    ------
    InputError
        The first file is unreadable, or its format is unknown.
    ValueError
        The index or format does not exist, or the files contain rows instead of categories.
    """
    paths, format, index = options.data, options.format, options.index
    if index not in INDEXES:
        raise ValueError(f"index must be one of {', '.join(INDEXES)}, not {index!r}")
    if index == "hash":
        return format
    if paths is None:
        raise ValueError(f"index must go with data, not {index!r} alone")
    kind = known_format(paths, format).removesuffix(EXACT)
    if kind + EXACT not in FORMATS:
        raise ValueError(f"index must be hash with format {kind}, not {index!r}")
    return kind + EXACT
