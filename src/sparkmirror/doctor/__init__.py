"""What is wrong with a running mirror, why, and what to do: findings by rules over the snapshot."""
