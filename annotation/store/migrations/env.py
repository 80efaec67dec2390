"""Run by Alembic, inside the transaction that `annotation.store.migrate` has begun."""

from alembic import context

from annotation.store.tables import Table

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Table.metadata,
    render_as_batch=True,
)
context.run_migrations()
