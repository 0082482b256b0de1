"""A store in a PostgreSQL database, which any number of servers share.

`database` says who uses which connection when, `driver` what a store needs of them.
"""

from ebrank.service.store.postgresql.store import PostgresStore

__all__ = ["PostgresStore"]
