"""The host side of the NIC in numpy: models, data sets, sharding, packets and timing models."""
