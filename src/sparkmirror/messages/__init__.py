"""Messages between the driver and its pumps: orders, the control topic, receipts and figures.

`pump` and `sync` import it, and everything above. Start with `orders`.
"""
