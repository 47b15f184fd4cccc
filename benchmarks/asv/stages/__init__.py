"""One file per stage. The classes do not import asv and run without it."""
