"""A file per stage. Plain classes: they run without asv too."""
