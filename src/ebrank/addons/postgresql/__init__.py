"""A store in a PostgreSQL database, which any number of servers share.

`database` says who uses which connection when, `driver` what a store needs of them.
"""

from ebrank.environment.extras import import_extra

import_extra("asyncpg", extra="postgresql", purpose="for a store in PostgreSQL")

from ebrank.addons.postgresql.driver import PostgresStore  # noqa: E402 (it needs asyncpg)

__all__ = ["PostgresStore"]
