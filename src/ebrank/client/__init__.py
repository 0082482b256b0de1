"""Talk to a server from Python: `Client`, and `AsyncClient` for asyncio.

    with ebrank.Client("http://127.0.0.1:8000") as client:
        client.put_items("tea", {"sencha": [0.4, 4.6], "assam": [0.2, 4.1]})
        served = client.rank("tea", k=2, user="ann")
        client.click(served, served.items[0].id)

Methods return the structs of `ebrank.service.api` and raise `ServiceError`. `retries` says what is
sent again if a request fails.
"""

from ebrank.environment.extras import import_extra

import_extra("msgspec", extra="service", purpose="to call a server")

from ebrank.client.calls import Retries, ServiceError  # noqa: E402 (they need msgspec)
from ebrank.client.methods import AsyncClient, Client  # noqa: E402
from ebrank.service.api import EventIn  # noqa: E402

__all__ = ["AsyncClient", "Client", "EventIn", "Retries", "ServiceError"]
