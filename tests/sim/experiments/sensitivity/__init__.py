"""Tests of the sensitivity."""
