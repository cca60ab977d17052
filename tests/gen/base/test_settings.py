"""Settings in the form of the command line."""

import pytest

from gen.base.settings import configure, parse_settings
from rtl.config import POLICY_CODES, preset

TYPES = {"size": int, "on": bool, "name": str, "rate": float}


@pytest.mark.parametrize("setting, value", [
    ("size=12", 12), ("size=0x40", 64), (" size = -3 ", -3),
    ("on=true", True), ("on=False", False), ("on=0", False), ("on=on", True),
    ("name=a=b", "a=b"), ("name=", ""), ("rate=1e-3", 1e-3)])
def test_values(setting, value):
    parsed = parse_settings([setting], TYPES)
    assert list(parsed.values()) == [value]
    assert type(next(iter(parsed.values()))) is type(value)


@pytest.mark.parametrize("settings, text", [
    (["size"], "setting must be field=value, not 'size'"),
    (["=3"], "setting must be field=value, not '=3'"),
    (["depth=3"], r"no such field: depth \(fields: name, on, rate, size\)"),
    (["size=1.5"], "size must be an integer, not '1.5'"),
    (["size="], "size must be an integer, not ''"),
    (["size=1_024"], "size must be an integer, not '1_024'"),
    (["size=\uff18"], "size must be an integer"),
    (["size=0b11"], "size must be an integer, not '0b11'"),
    (["rate=1_0"], "rate must be a number, not '1_0'"),
    (["on=maybe"], "on must be true or false, not 'maybe'"),
    (["rate=fast"], "rate must be a number, not 'fast'"),
    (["size=1", "size=2"], "size must be set once: remove size=2")])
def test_errors(settings, text):
    with pytest.raises(ValueError, match=text):
        parse_settings(settings, TYPES)


def test_configure():
    changed = configure(preset("tiny"), ["max_dimension=32", "name=small"])
    assert (changed.max_dimension, changed.name, changed.nodes) == (32, "small", 8)
    assert configure(preset("tiny"), []) == preset("tiny")
    assert configure(preset("tiny"), ["policy=lru"]) == preset("tiny")


@pytest.mark.parametrize("setting, text", [
    ("max_dimension=20", "max_dimension must be 4, 8 or a multiple of 16, not 20"),
    ("local_cache_ways=3", "local_cache_ways must be a power of two, not 3"),
    ("policy=belady", f"policy must be one of {', '.join(POLICY_CODES)}, not 'belady'"),
    ("colour=red", "no such field: colour")])
def test_bad_configurations(setting, text):
    with pytest.raises(ValueError, match=text):
        configure(preset("tiny"), [setting])
