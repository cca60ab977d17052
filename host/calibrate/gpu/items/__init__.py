"""The measured items: each module yields the readings of one or several items."""
