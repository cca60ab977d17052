"""Error messages of commands: a line of limited length."""

__all__ = ["BuildError", "one_line"]

_MOST = 240
"""Maximum characters of a word, for example of a path."""


class BuildError(Exception):
    """A tool failed. The message contains its exit status or signal, and its output."""


def one_line(message: str) -> str:
    """Return ``message`` on one line, without the middle of very long words."""
    return " ".join(word if len(word) <= _MOST else f"{word[:_MOST // 2]}...{word[-_MOST // 4:]}"
                    for word in message.split())
