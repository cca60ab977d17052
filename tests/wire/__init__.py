"""Attacks on the wire: forged frames with right CRCs, and what a run makes of them."""
