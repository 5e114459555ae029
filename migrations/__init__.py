"""Alembic migrations of the store, dated, one file each."""
