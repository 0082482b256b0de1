"""A store in a schema of a database."""

from __future__ import annotations

from ebrank.service.store.base import Store
from ebrank.service.store.driver import Mode
from ebrank.service.store.postgresql import schema
from ebrank.service.store.postgresql.database import Address, Database, Session
from ebrank.service.store.postgresql.driver import PostgresDriver


class PostgresStore(Store):
    """A schema of a database, which many servers share.

    A `new` store is written in one transaction, and does not exist before that ends.
    """

    @classmethod
    async def open(cls, rest: str, mode: Mode = "serve") -> PostgresStore:
        """Return the store at an address, given without its scheme.

        Raises:
            StoreError: if it cannot be reached, or it is not a store.
        """
        address = Address(f"postgresql:{rest}")
        if mode != "serve":
            return cls(PostgresDriver(await Session.open(address, mode)))
        database = await Database.open(address)
        store = cls(PostgresDriver(database))
        try:
            await store.deletions.finish()
        except BaseException:
            await database.close(discard=True)
            raise
        return store

    @classmethod
    async def migrate(cls, rest: str) -> tuple[str, int, int]:
        """Bring a store to this version; return its name and the versions before and now."""
        address = Address(f"postgresql:{rest}")
        with address.explained():
            connection = await address.connected()
            try:
                before = await schema.migrate(connection, address.schema, address.name)
            finally:
                await connection.close()
        return address.name, before, schema.VERSION
