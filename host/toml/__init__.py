"""TOML files with units: models, clusters and profiles, and the provenance of constants."""
