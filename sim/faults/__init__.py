"""The fault suite: links and clusters over networks that lose, duplicate, reorder and corrupt."""
