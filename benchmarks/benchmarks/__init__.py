"""Benchmarks for asv, a file per stage. Plain classes: they run without asv too."""
