"""Messages between the driver and the pumps, and between pumps.

These are orders, the control topic, moves, receipts, figures and the status topic. `pump`, `sync` and all packages
above import this package. Start with `orders`.
"""
