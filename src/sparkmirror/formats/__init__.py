"""Files of other formats than mm2.properties."""
