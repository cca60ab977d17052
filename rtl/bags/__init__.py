"""Bags that pool at their owner: their words in packets, from the host to the owner's GPU."""

from rtl.bags.bounds import RowBounds
from rtl.bags.check import BagCheck
from rtl.bags.credit import BagCredit, BagCreditReturn
from rtl.bags.gradients import BagGradients, GradientLists
from rtl.bags.landing import BagLanding
from rtl.bags.lost import BufferedLostBags, LostBags
from rtl.bags.packager import BagPackager
from rtl.bags.places import OwnerPlaces
from rtl.bags.pool import BagPool
from rtl.bags.receiver import BagReceiver
from rtl.bags.sender import BagSender
from rtl.bags.splitter import SegmentSplit
from rtl.bags.store import SegmentStore
from rtl.bags.unpacker import BagUnpacker
from rtl.bags.word_ring import WordRing
from rtl.bags.word_store import WordStore

__all__ = ["BagCheck", "BagCredit", "BagCreditReturn", "BagGradients", "BagLanding", "BagPackager",
           "BagPool", "BagReceiver", "BagSender", "BagUnpacker", "BufferedLostBags",
           "GradientLists", "LostBags", "OwnerPlaces", "RowBounds", "SegmentSplit", "SegmentStore",
           "WordRing", "WordStore"]
