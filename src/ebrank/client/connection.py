"""What both clients share: an address, a token, a timeout."""

from __future__ import annotations

from typing import Any, ClassVar

from ebrank.client import calls
from ebrank.client.retries import Retries
from ebrank.errors import ParameterError
from ebrank.extras import import_extra

LONGEST_SECONDS = 3600.0
"""How long a deletion may take: it reads the whole log."""


class Connection:
    """Where a server is and how to call it; methods raise `ServiceError`."""

    _transport: ClassVar[str]  # the class of httpx that carries requests

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8000",
        *,
        token: str | None = None,
        timeout: float = 5.0,
        retries: Retries | None = None,
    ) -> None:
        """Connect on the first call.

        Args:
            base_url: where the server listens.
            token: a bearer token, if the server needs one.
            timeout: seconds to wait for a response; for that to a deletion, it is an hour.
            retries: what to do if none comes.
        """
        if not base_url.startswith(("http://", "https://")):
            raise ParameterError(
                f"{base_url!r} is no address of a server: it begins with http:// or https://, "
                f"such as http://{base_url or '127.0.0.1:8000'}"
            )
        httpx = import_extra("httpx", extra="service", purpose="to call a server")
        self._url = base_url.rstrip("/")
        self._retries = retries or Retries()
        self._errors = httpx.TransportError
        self._timeout = httpx.Timeout(timeout)
        self._long_timeout = httpx.Timeout(timeout, read=LONGEST_SECONDS)
        transport = getattr(httpx, self._transport)
        self._http: Any = transport(
            headers=calls.headers(token),
            verify=self._url.startswith("https://"),  # certificates take a while to load
        )
