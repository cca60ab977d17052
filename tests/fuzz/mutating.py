"""Mutations of texts and bytes, and values that no option expects."""

import random

__all__ = ["HOSTILE", "mutated", "mutated_text"]

HOSTILE = (
    "", " ", "-", "--", ".", "..", "/", "~", "\x00", "\n", "a\nb", "\t", "'", "\"", "%s", "{}",
    "[", "=", "0", "-0", "+0", "-1", "1", "2", "3", "7", "00", "1_0", " 8 ", "\uff18", "\u0663",
    "0x10", "0b1", "1e3", "1.5", ".5", "5.", "1e999", "nan", "inf", "-inf", "NaN", "true", "None",
    "2147483647", "2147483648", "4294967296", "9223372036854775807", "18446744073709551615",
    "18446744073709551616", "18446744073709551617", "9" * 40, "9" * 5000, "a" * 300, "\xe9",
    "\ud800", "\U0001f600", "../../etc/passwd", "/dev/null", "/dev/zero", "/dev/full",
    "/proc/self/mem", "/nonexistent/x", "x.toml", "x.json", "x.csv", "x.png", "-.toml", "1,2",
    "1,,2", ",", "0,0,1", "1:2", ":", "1us", "1e5us", "-1us", "1 s", "kaggle", "criteo", "row",
    "even", "lru", "model", "drop=0.1", "drop=2", "silent-gpu=1us:", "seed=1", "corrupt=#1@0>1",
    "reorder=0.1:1e30us", "down=0us:1us@9", "local_cache=false",
)
"""Values for any option; each is valid for few options."""

_TOKENS = (b"", b"0", b"-1", b"9" * 30, b"1e400", b"nan", b"[", b"]", b"{", b"}", b"\"", b"'", b"=",
           b"\n", b"\t", b",", b":", b".", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"a.b.c", b"true")


def mutated(content: bytes, chance: random.Random) -> bytes:
    """Return ``content`` with one to four changes of bits, bytes, parts or tokens, or with its end
    cut off."""
    found = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        at = chance.randrange(len(found) + 1)
        kind = chance.randrange(7)
        if kind == 0 and at < len(found):
            found[at] ^= 1 << chance.randrange(8)
        elif kind == 1 and at < len(found):
            found[at] = chance.randrange(256)
        elif kind == 2:
            del found[at:at + chance.choice((1, 2, 8, 64))]
        elif kind == 3:
            found[at:at] = found[at:at + chance.choice((1, 4, 32))] * chance.choice((1, 2, 50))
        elif kind == 4:
            found[at:at + chance.choice((0, 1, 3))] = chance.choice(_TOKENS)
        elif kind == 5:
            other = chance.randrange(len(found) + 1)
            found[at:at] = found[other:other + chance.choice((1, 8, 40))]
        else:
            del found[at:]
    return bytes(found)


def mutated_text(text: str, chance: random.Random) -> str:
    """Return ``text`` mutated, as text again."""
    return mutated(text.encode("utf-8", "surrogatepass"), chance).decode("utf-8", "replace")
