"""Messages between the driver and its pumps: orders, the control topic, receipts and figures.

`pump`, `sync` and all packages above import this package. Start with `orders`.
"""
