"""What goes over the wire: one struct for each request and each response.

The engine takes and returns these values and the HTTP layer passes them through, so a call in a
test and a call over the network are the same call.
"""

from ebrank.service.api.calls import *  # noqa: F403 (all that it defines)
from ebrank.service.api.reports import *  # noqa: F403 (all that it defines)
