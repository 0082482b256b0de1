"""A store that is lost when the process ends: for tests, demos, and as the reference.

It does what `sqlite` does, but with dictionaries and lists, so tests compare the two step by step.
No method ever waits, so its effect is immediate.

>>> import asyncio
>>> from ebrank.service.store.records import NewItem, RankingEntry
>>> async def session() -> None:
...     store = MemoryStore()
...     await store.items.put("shoes", [NewItem("a", (1.0,)), NewItem("b", (2.0,))], time=10.0)
...     await store.log.write([RankingEntry("r1", "shoes", 11.0, 0, items=("b", "a"))])
...     print((await store.items.load("shoes")).counts[:, 0])  # how often at ranks 1 and 2
>>> asyncio.run(session())
[[0 1]
 [1 0]]
"""

from ebrank.service.store.memory.store import MemoryStore

__all__ = ["MemoryStore"]
