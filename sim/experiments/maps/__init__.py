"""Maps: claims over many settings, and in the setting nearest to the paper."""
