"""The pump's side of one connection.

The connection asks for a channel, watches the channel, lends the channel to the dialer for signing in again, and gives
the channel up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from sparkmirror.kafka.wire.channel import Channel, ChannelClosed
from sparkmirror.pump.limits import LONGEST_THROTTLE_S
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.tally import TrafficMeter


class BrokerConnection(ABC):
    """Connection to one broker, for one use.

    `peer` names the broker for people. `dial` asks for a channel, and `renew` asks for a new sign-in over the present
    channel; the dialer calls `failed` if either fails. A connection that has lost its channel is never used again.
    """

    def __init__(
        self,
        peer: str,
        loop: Loop,
        dial: Callable[[], None],
        renew: Callable[[BrokerConnection, Channel], None],
        meter: TrafficMeter,
    ) -> None:
        self.peer = peer
        self.meter = meter
        self._loop = loop
        self._dial = dial
        self._renew = renew
        self._channel: Channel | None = None
        self._dialing_since: float | None = None
        self._renewing = False
        self._lost = False
        self._throttled_until = 0.0

    def _throttle(self, ms: int) -> float:
        """Leave the broker alone as asked; return when that ends.

        At most `LONGEST_THROTTLE_S`.
        """
        self.meter.throttle_ms += min(ms, int(LONGEST_THROTTLE_S * 1000))
        self._throttled_until = max(self._throttled_until, self._loop.now + min(ms / 1000, LONGEST_THROTTLE_S))
        return self._throttled_until

    @property
    def throttled_s(self) -> float:
        """Seconds for which the broker is still left alone, as asked; 0: no throttle."""
        return max(self._throttled_until - self._loop.now, 0.0)

    @property
    def dialing_s(self) -> float:
        """Seconds since the channel was asked for; 0: the connection waits for no channel."""
        return 0.0 if self._dialing_since is None or self._lost else self._loop.now - self._dialing_since

    def is_slow(self, slow_s: float) -> bool:
        """True if the broker has been left alone, or the channel asked for, for longer."""
        return self.throttled_s > slow_s or self.dialing_s > slow_s

    @abstractmethod
    def pump(self) -> None:
        """Send all that can be sent now."""

    @abstractmethod
    def on_readable(self) -> None:
        """Read the answers that have come."""

    @abstractmethod
    def _lose(self, reason: str) -> None:
        """Give the connection up for good."""

    def failed(self, reason: str) -> None:
        """Take it that no channel can be had now."""
        if not self._lost:
            self._lose(reason)

    def renewed(self, channel: Channel) -> None:
        """Use the channel again after a new sign-in."""
        if channel is not self._channel:
            channel.close()
            return
        self._renewing = False
        self._loop.watch(channel, self)
        self.pump()

    def on_writable(self) -> None:
        if self._channel is not None:
            try:
                self._channel.flush()
                self._loop.want_write(self._channel, self, self._channel.unsent)
            except ChannelClosed as error:
                self._lose(str(error))

    @property
    def is_connected(self) -> bool:
        return self._channel is not None

    def dial_ahead(self) -> None:
        """Connect now, although there is nothing to send yet."""
        if self._channel is None and not self._lost:
            self._ask_for_channel()

    def _ask_for_channel(self) -> None:
        if self._dialing_since is None:
            self._dialing_since = self._loop.now
            self._dial()

    def _take_channel(self, channel: Channel) -> bool:
        """Use a channel that was asked for; False if the connection is lost.

        Then the channel is closed.
        """
        if self._lost:
            channel.close()
            return False
        self._dialing_since = None
        self._channel = channel
        self.meter.connections += 1
        self._loop.watch(channel, self)
        return True

    def _start_renewal(self, channel: Channel) -> None:
        """Leave the channel to the dialer for a new sign-in, with no request in flight.

        The connection does without the channel until `renewed` or `failed`.
        """
        self._renewing = True
        self._loop.unwatch(channel)
        self._renew(self, channel)

    def _hang_up(self) -> None:
        """Close the channel, unless the dialer's thread has it.

        A channel in renewal is closed by `renewed`, or by the dialer if the sign-in fails.
        """
        if self._channel is not None:
            self.meter.connections -= 1
            if not self._renewing:
                self._loop.unwatch(self._channel)
                self._channel.close()
        self._channel = None
        self._renewing = False
