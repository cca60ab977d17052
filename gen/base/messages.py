"""What a command says of a mistake: one line of bearable length."""

__all__ = ["BuildError", "one_line"]

_MOST = 240
"""Characters of a word: a path may have as many, and what somebody gave in place of one more."""


class BuildError(Exception):
    """A tool failed; the message has its exit status or signal, and its output."""


def one_line(message: str) -> str:
    """Return ``message`` on one line; the middle of a very long word is left out."""
    return " ".join(word if len(word) <= _MOST else f"{word[:_MOST // 2]}...{word[-_MOST // 4:]}"
                    for word in message.split())
