"""Messages between the driver and the pumps.

These are orders, the control topic, receipts and figures. `pump`, `sync` and all packages above import this package.
Start with `orders`.
"""
