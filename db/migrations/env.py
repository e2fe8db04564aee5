"""What Alembic runs: everything in one transaction, on the connection that `db.migrate` hands over."""

from alembic import context
from sqlalchemy import Connection

from db.projections.tables import RunRow

connection: Connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=RunRow.metadata)
with context.begin_transaction():
    context.run_migrations()
