"""Checks of a configuration: each message names field, value and bound."""

import pytest

from rtl.config import POLICY_CODES, PRESETS, preset


@pytest.mark.parametrize("field, value, error, message", [
    ("interaction_vectors", 65, ValueError, "interaction_vectors must be between 2 and 64, not 65"),
    ("interaction_vectors", 1, ValueError, "interaction_vectors must be between 2 and 64, not 1"),
    ("interaction_vectors", 8.0, TypeError, "interaction_vectors must be an integer, not 8.0"),
    ("dot_units", 17, ValueError, "dot_units must be between 0 and 16, not 17"),
    ("dot_units", -1, ValueError, "dot_units must be between 0 and 16, not -1"),
    ("update_rows", 4, ValueError, "update_rows must be between 8 and 4096, not 4"),
    ("update_rows", 24, ValueError, "update_rows must be a power of two, not 24"),
    ("dense_vectors", 4, ValueError, "dense_vectors must be between 8 and 16384, not 4"),
    ("dense_vectors", 48, ValueError, "dense_vectors must be a power of two, not 48"),
    ("dot_units", True, TypeError, "dot_units must be an integer, not True"),
])
def test_sizes_of_the_dot_interaction(field, value, error, message):
    with pytest.raises(error, match=message):
        preset("tiny").with_fields(**{field: value})


@pytest.mark.parametrize("changes, message", [
    ({"link": True, "nodes": 30, "net_payload_beats": 140},
     "nodes must be at most 29 with link and net_payload_beats 140, not 30: use fewer nodes or a "
     "smaller net_payload_beats"),
    ({"net_payload_beats": 140},
     "host_payload_beats must be 140 with net_payload_beats 140, not 64: use a larger "
     "host_payload_beats or a smaller net_payload_beats"),
    ({"max_dimension": 256, "net_payload_beats": 16},
     "net_payload_beats must be between 17 and 140 with max_dimension 256, not 16: use a larger "
     "net_payload_beats or a smaller max_dimension"),
    ({"net_payload_beats": 141}, "net_payload_beats must be between 2 and 140, not 141"),
    ({"remote_cache_ways": 16, "remote_cache_rows": 16},
     "remote_cache_rows must be between 32 and 131072 with remote_cache_ways 16, not 16: use a "
     "larger remote_cache_rows or a smaller remote_cache_ways"),
    ({"gradient_beats": 128},
     "gradient_beats must be between 130 and 4096 with host_payload_beats 64, not 128: use a "
     "larger gradient_beats or a smaller host_payload_beats"),
])
def test_a_bound_names_the_field_on_which_it_depends(changes, message):
    with pytest.raises(ValueError) as error:
        preset("kaggle").with_fields(**changes)
    assert str(error.value) == message


@pytest.mark.parametrize("value", ["belady", "LRU", "", 0, None])
def test_the_policy_is_one_of_those_there_are(value):
    assert all(config.policy == "lru" for config in PRESETS.values())
    with pytest.raises(ValueError, match=f"one of {', '.join(POLICY_CODES)}, not {value!r}"):
        preset("tiny").with_fields(policy=value)


@pytest.mark.parametrize("value", ["rounded", "", 32, None])
def test_sums_of_gradients_are_exact_or_float32(value):
    assert all(config.gradient_sums == "exact" for config in PRESETS.values())
    with pytest.raises(ValueError, match=f"^gradient_sums must be .* float32, not {value!r}$"):
        preset("tiny").with_fields(gradient_sums=value)


def test_a_preset_takes_a_vector_a_cycle():
    # The pairs of a slice take no longer than its vectors, except in preset tiny.
    for name, config in PRESETS.items():
        pairs = config.interaction_vectors * (config.interaction_vectors - 1) // 2
        assert name == "tiny" or pairs <= config.dot_units * config.interaction_vectors


@pytest.mark.parametrize("field, value, error, message", [
    ("training", 1, TypeError, "training must be True or False, not 1"),
    ("gradient_ways", 3, ValueError, "gradient_ways must be a power of two, not 3"),
    ("gradient_ways", 32, ValueError, "gradient_ways must be between 1 and 16, not 32"),
    ("local_gradient_keys", 4, ValueError, "local_gradient_keys must be between 8 and 65536"),
    ("global_gradient_keys", 48, ValueError, "global_gradient_keys must be a power of two"),
    ("global_gradient_keys", 64.0, TypeError, "global_gradient_keys must be an integer, not 64.0"),
    ("gradient_beats", 128, ValueError, "gradient_beats must be between 130 and 4096 with"),
    ("partial_beats", 16, ValueError, "partial_beats must be between 32 and 16384 with nodes 8"),
])
def test_sizes_of_training(field, value, error, message):
    with pytest.raises(error, match=message):
        preset("tiny").with_fields(**{field: value})


@pytest.mark.parametrize("value, error, message", [
    (8, ValueError, "unique_keys must be 0 or a multiple of 8, at least 16, not 8"),
    (100, ValueError, "unique_keys must be 0 or a multiple of 8, at least 16, not 100"),
    (1 << 18, ValueError, "unique_keys must be between 0 and 131072, not 262144"),
    (64.0, TypeError, "unique_keys must be an integer, not 64.0"),
])
def test_sizes_of_the_table_of_unique_keys(value, error, message):
    with pytest.raises(error, match=message):
        preset("tiny").with_fields(unique_keys=value)


def test_unique_keys_of_presets():
    assert preset("tiny").with_fields(unique_keys=0).unique_keys == 0
    assert preset("kaggle").unique_keys == 4096 and preset("terabyte").unique_keys == 8192


@pytest.mark.parametrize("name", PRESETS)
def test_windows_of_training(name):
    config = preset(name)
    # A part of an owner's share stays free; a packet of a record and its beat fits.
    assert 2 <= config.gradient_window < config.partial_beats // config.nodes
    assert config.host_payload_beats <= config.gradient_credits


@pytest.mark.parametrize("changes, error, message", [
    ({"owner_bags": 8}, ValueError, "owner_bags must be between 16 and 4096, not 8"),
    ({"owner_bags": 48}, ValueError, "owner_bags must be a power of two, not 48"),
    ({"owner_bags": True}, TypeError, "owner_bags must be an integer, not True"),
    ({"bag_segments": 16}, ValueError, "bag_segments must be between 32 and 16384, not 16"),
    ({"owner_bag_beats": 16}, ValueError,
     "owner_bag_beats must be between 32 and 16384 with nodes 8, not 16: use a larger "
     "owner_bag_beats or a smaller nodes"),
])
def test_sizes_of_owner_pooling(changes, error, message):
    with pytest.raises(error) as raised:
        preset("tiny").with_fields(**changes)
    assert str(raised.value) == message


def test_longest_bag():
    """It fits a packet of the network, a packet of queries, and the credit of every owner."""
    config = preset("kaggle")
    assert (config.bag_window, config.bag_words) == (56, 8 * config.net_payload_beats)
    assert config.with_fields(query_beats=32).bag_words == 8 * 16
    assert config.with_fields(owner_bag_beats=256).bag_words == 8 * 14
