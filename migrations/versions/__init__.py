"""One dated file per change of the tables."""
