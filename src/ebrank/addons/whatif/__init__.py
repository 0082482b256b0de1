"""What would have happened: policies replayed in worlds that a log leaves possible.

`History` is what a log says, `Belief` what it leaves open, `Replay` runs a policy in one world of
that belief, `whatif` compares policies over many.
"""

from __future__ import annotations

from ebrank.addons.whatif.forecast import Forecast, whatif
from ebrank.addons.whatif.history import History

__all__ = ["Forecast", "History", "whatif"]
