"""The command `sparkmirror`, but that a process looks up every second what it else looks up now and then."""

from __future__ import annotations

from sparkmirror.cli import main
from sparkmirror.mirror.engine import flow_view, forecast, lag_monitor, surroundings, transaction_watch

surroundings.LOOK_S = 1.0
lag_monitor.LOOK_S = 1.0
lag_monitor.RETENTION_S = 1.0
forecast.SHORTEST_S = 3.0
flow_view.ENDS_S = 8.0
transaction_watch.LONG_S = 3.0

if __name__ == "__main__":
    main()
