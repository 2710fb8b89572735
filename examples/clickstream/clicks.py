"""A shop's visitors, click by click, and the clients' settings out of a properties file."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from javaproperties import load

NEXT = {
    "home_page": ("product_catalog",),
    "product_catalog": ("home_page", "product_detail"),
    "product_detail": ("product_catalog", "add_to_cart"),
    "add_to_cart": ("product_catalog", "remove_from_cart", "order"),
    "remove_from_cart": ("", "product_detail", "product_catalog"),
    "order": ("order_checkout", "remove_from_cart", "product_catalog"),
    "order_checkout": ("",),
}
"""Pages that may follow each page; the empty one ends the session."""

PRODUCTS = ("books", "cameras", "clothes", "games", "garden", "music", "shoes", "toys")
DEVICES = ("mobile", "computer", "tablet")
WITHOUT_PRODUCT = ("home_page", "product_catalog")
FIRST_USER = 1000


def session(user: int, chance: random.Random) -> Iterator[dict[str, Any]]:
    """Yield the clicks of a user's session, without their numbers and times."""
    ip, device = f"66.249.1.{chance.randrange(255)}", chance.choice(DEVICES)
    page, product = "home_page", "N/A"
    while page:
        if page == "product_detail":
            product = chance.choice(PRODUCTS)
        shown = "N/A" if page in WITHOUT_PRODUCT else product
        yield {"ip": ip, "devicetype": device, "event_type": page, "product_type": shown, "userid": user}
        page = chance.choice(NEXT[page])


def client_settings(file: str | None, known: Mapping[str, Any]) -> dict[str, Any]:
    """Read the settings of a kafka-python client, with dots for underscores in their names.

    A key that the client does not know is named on standard error, and left out.
    """
    told: dict[str, Any] = {}
    if file is not None:
        with open(file, "rb") as stream:
            told = load(stream)
    settings = {key.replace(".", "_"): value for key, value in told.items()}
    for key in settings.keys() - known.keys():
        print(f"{file}: {key.replace('_', '.')} is no setting of this client, and is left out", file=sys.stderr)
    return {key: value for key, value in settings.items() if key in known}
