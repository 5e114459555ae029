"""Training: from a table to a version. So far, how a version's metrics are measured."""
