"""Alembic: environment and versions. Run through `db.migrate`."""
