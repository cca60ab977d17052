"""Attacks on the wire: forged frames with correct CRCs, and their effect on a run."""
