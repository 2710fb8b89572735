"""A running mirror's HTTP listeners: metrics, health, and the page."""
