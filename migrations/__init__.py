"""Alembic migrations, one dated file per change under versions/; service/store/migrating.py runs them."""
