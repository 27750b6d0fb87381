"""How often somebody may ask: a bucket of requests for each key and address, in bounded memory."""

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache


class Rates:
    """Token buckets: each holds `burst` requests and is refilled at `rate` a second.

    Parameters
    ----------
    rate : float
        Requests a second; 0 for no limit.
    burst : int
        Requests at once, at least 1.
    most : int
        Buckets in memory. One more forgets the one used longest ago.
    clock : callable
        Seconds, never running backwards.

    Examples
    --------
    >>> rates = Rates(rate=2.0, burst=1, most=10, clock=lambda: 0.0)
    >>> rates.wait("ada"), rates.wait("ada")
    (0, 1)
    """

    def __init__(
        self, rate: float, burst: int, most: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._most, self._clock = rate, burst, most, clock
        self._full_at: OrderedDict[str, float] = OrderedDict()  # when a bucket is full again

    def __len__(self) -> int:
        return len(self._full_at)

    def wait(self, who: str) -> int:
        """Take a request out of a bucket; return 0, or the whole seconds until there is one."""
        if not self._rate:
            return 0
        now = self._clock()
        full_at = max(self._full_at.get(who, now), now) + 1 / self._rate
        too_long = full_at - now - self._burst / self._rate
        if too_long > 1e-9:
            return math.ceil(too_long)
        self._full_at[who] = full_at
        self._full_at.move_to_end(who)
        if len(self._full_at) > self._most:
            self._full_at.popitem(last=False)
        return 0


@lru_cache(maxsize=4096)
def network_of(host: str) -> str:
    """Return what one subscriber has: an IPv4 address, the first 64 bits of an IPv6 address.

    Examples
    --------
    >>> network_of("192.0.2.7"), network_of("2001:db8:0:1:2:3:4:5")
    ('192.0.2.7', '2001:db8:0:1::')
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((int(address) >> 64 << 64, 64)).network_address)
