"""Reliable link: packets between NICs are numbered, acknowledged, and repeated until acknowledged.

Each pair of sender and receiver has its own sequence numbers. The header of every packet
acknowledges all packets before ``acknowledge``. LINK packets acknowledge 512 packets with one bit
each; they are sent if a packet is missing, or if no other packet leaves in time. A packet that is
not acknowledged within the timeout is sent again (selective repeat, as TCP with RFC 2018 and RFC
6298). The link does not keep the order of packets: no message between NICs depends on it.
"""
