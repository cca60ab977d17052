"""The host side of the NIC in numpy: models, data sets, sharding, packets and timing models."""

from embernic_names import check_names

check_names(__name__)
