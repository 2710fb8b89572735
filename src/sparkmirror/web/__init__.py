"""HTTP listeners of a running mirror: metrics, health, and the page."""
