"""Generator of a configuration's documents from the source: ``python -m gen.documents``."""

from gen.documents.write import documents, renew_command

__all__ = ["documents", "renew_command"]
