"""A mirror's views: page, metrics and doctor."""
