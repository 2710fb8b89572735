# Until 0.3 MSK clusters were made here: they are forgotten, and run on. examples/with_msk/clusters may import them.

removed {
  from = aws_msk_cluster.this
  lifecycle { destroy = false }
}

removed {
  from = aws_msk_configuration.this
  lifecycle { destroy = false }
}

removed {
  from = aws_kms_key.msk
  lifecycle { destroy = false }
}

removed {
  from = aws_cloudwatch_log_group.msk
  lifecycle { destroy = false }
}

removed {
  from = aws_security_group.msk
  lifecycle { destroy = false }
}
