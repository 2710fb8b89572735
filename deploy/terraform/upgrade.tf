# Of deployments up to 0.2: repositories keep their images. MSK clusters are forgotten, and run on; examples/with_msk/clusters
# may import them.

moved {
  from = aws_ecr_repository.sparkmirror
  to   = module.repositories.aws_ecr_repository.this["sparkmirror"]
}

moved {
  from = aws_ecr_repository.prometheus
  to   = module.repositories.aws_ecr_repository.this["sparkmirror-prometheus"]
}

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
