"""A pump's side of one connection: its channel is asked for, watched, lent to whoever signs in again, and given up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from sparkmirror.pump.limits import LONGEST_THROTTLE_S
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.tally import LegMeter
from sparkmirror.wire.channel import Channel, ChannelClosed


class Leg(ABC):
    """`peer` names the broker for people. `dial` asks for a channel, `renew` for a sign-in over the one there is;
    `failed` answers where that came to nothing. A leg that has lost its channel is not used again.
    """

    def __init__(
        self,
        peer: str,
        loop: Loop,
        dial: Callable[[], None],
        renew: Callable[[Leg, Channel], None],
        meter: LegMeter,
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
        """The broker asks to be left alone for so long: until when that is done."""
        self.meter.throttle_ms += min(ms, int(LONGEST_THROTTLE_S * 1000))
        self._throttled_until = max(self._throttled_until, self._loop.now + min(ms / 1000, LONGEST_THROTTLE_S))
        return self._throttled_until

    @property
    def throttled_s(self) -> float:
        """How long it is still left alone, as it asked; 0: it is not."""
        return max(self._throttled_until - self._loop.now, 0.0)

    @property
    def dialing_s(self) -> float:
        """How long its channel has been asked for; 0: none is waited for."""
        return 0.0 if self._dialing_since is None or self._lost else self._loop.now - self._dialing_since

    @abstractmethod
    def pump(self) -> None:
        """Send what can be sent."""

    @abstractmethod
    def on_readable(self) -> None:
        """Take what has come."""

    @abstractmethod
    def _lose(self, reason: str) -> None:
        """The connection is of no more use."""

    def failed(self, reason: str) -> None:
        """There is no channel to be had now."""
        if not self._lost:
            self._lose(reason)

    def renewed(self, channel: Channel) -> None:
        """The channel may be used again."""
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

    def _ask_for_channel(self) -> None:
        if self._dialing_since is None:
            self._dialing_since = self._loop.now
            self._dial()

    def _take_channel(self, channel: Channel) -> bool:
        """Whether there is still a use for the channel that was asked for."""
        if self._lost:
            channel.close()
            return False
        self._dialing_since = None
        self._channel = channel
        self.meter.connections += 1
        self._loop.watch(channel, self)
        return True

    def _start_renewal(self, channel: Channel) -> None:
        """Nothing is in flight: the channel is left to whoever signs in, until `renewed` or `failed`."""
        self._renewing = True
        self._loop.unwatch(channel)
        self._renew(self, channel)

    def _hang_up(self) -> None:
        """Close the channel; one that is being renewed is another thread's, and `renewed` closes it."""
        if self._channel is not None:
            self.meter.connections -= 1
            if not self._renewing:
                self._loop.unwatch(self._channel)
                self._channel.close()
        self._channel = None
        self._renewing = False
