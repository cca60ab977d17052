"""Tests of the blocks of bags that pool at their owner."""
