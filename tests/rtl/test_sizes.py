"""A NIC of any sizes is rejected in one line, or elaborates."""

import random

import pytest
from amaranth.hdl import Fragment

from rtl.config import LINK_POOL_BEATS, LINK_POOL_SPARE, PRESETS, preset
from rtl.network.link.sender import LinkSender
from tests.rtl.elaborating import ElaborationPlatform, drawn, elaborate


@pytest.mark.parametrize("base", PRESETS)
@pytest.mark.parametrize("beats", [22, 64, 140])
def test_the_pool_of_the_link_has_the_longest_packet_of_each_node(base, beats):
    most = (LINK_POOL_BEATS - LINK_POOL_SPARE) // beats
    sizes = {"net_payload_beats": beats, "host_payload_beats": 140, "gradient_beats": 512,
             "link": True}
    assert preset(base).with_fields(nodes=min(most, 16), **sizes).link
    for nodes in {min(most + 1, 64), 64}:
        if nodes <= most:
            preset(base).with_fields(nodes=nodes, **sizes, lookup_beats=4096, partial_beats=4096)
            continue
        with pytest.raises(ValueError, match=f"nodes must be at most {most} with link and "
                                             f"net_payload_beats {beats}, not {nodes}: use fewer "
                                             f"nodes or a smaller net_payload_beats"):
            preset(base).with_fields(nodes=nodes, **sizes, lookup_beats=4096, partial_beats=4096)


def test_messages_name_field_and_value():
    rng, rejected = random.Random(45), 0
    for _ in range(150):
        rejected += drawn(rng)[0] is None
    assert 10 < rejected < 140


def test_the_largest_pool_elaborates():
    config = preset("tiny").with_fields(
        nodes=29, net_payload_beats=140, host_payload_beats=140, gradient_beats=512, link=True)
    Fragment.get(LinkSender(config), ElaborationPlatform())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_nic_is_rejected_or_elaborates(seed):
    rng = random.Random(seed)
    built = 0
    while built < 30:
        config, changes = drawn(rng)
        if config is None:
            continue
        try:
            elaborate(config)
        except (ValueError, TypeError) as error:
            raise AssertionError(changes) from error
        built += 1
