"""A store in a PostgreSQL database, which any number of servers share.

`schema` defines the tables and what one call does in the database, `database` who uses which
connection when; the other modules are the groups of methods that `base` describes.
"""

from ebrank.service.store.postgresql.store import PostgresStore

__all__ = ["PostgresStore"]
