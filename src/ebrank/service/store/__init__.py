"""Where the service keeps everything: `open` opens a store by its URL, `base` says what one is.

`memory` is the shortest store, `sqlite` the default.
"""

from ebrank.service.store.base import Mode, Store, StoreError
from ebrank.service.store.urls import open, open_existing

__all__ = ["Mode", "Store", "StoreError", "open", "open_existing"]
