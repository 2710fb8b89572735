"""An operator for Strimzi's `KafkaMirrorMaker2`: pods of `sparkmirror serve`, one deployment for each resource."""
