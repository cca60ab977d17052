"""Reliable link: packets between NICs are numbered, acknowledged, and sent again until they are.

Each pair of sender and receiver has sequence numbers of its own. What has come is told in the
header of every packet (all before ``acknowledge``) and, where something is missing or nothing else
leaves in time, in LINK packets (a bit for each of 512 packets). What is not acknowledged in the
time that round trips take is sent again (selective repeat, as TCP with RFC 2018, 6298). Order is
not promised: no message between NICs depends on it.
"""
