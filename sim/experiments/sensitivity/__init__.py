"""Sensitivity: the ratio of systems while the uncertain constants change."""
