locals {
  urls = {
    prometheus = "http://prometheus.${local.namespace}:${local.ports.prometheus}"
    grafana    = "http://grafana.${local.namespace}:${local.ports.grafana}"
    page       = "http://driver.${local.namespace}:${local.ports.metrics}/"
  }
}

output "urls" {
  description = "Prometheus, Grafana and the live page, from within the VPC: by the bastion's tunnel."
  value       = local.urls
}

output "connector_uris" {
  description = "S3 URIs of the connectors' files as they are run, for `aws s3 cp`."
  value       = [for name in sort(keys(local.configuration)) : "s3://${aws_s3_bucket.configuration.bucket}/${name}" if startswith(name, "connector/")]
}

output "repository" {
  description = "Where build_images.sh pushes sparkmirror to."
  value       = aws_ecr_repository.sparkmirror.repository_url
}

output "prometheus_repository" {
  description = "Where build_images.sh pushes sparkmirror-prometheus to."
  value       = aws_ecr_repository.prometheus.repository_url
}

output "brokers" {
  description = "Of both clusters, those that were made here included."
  value       = local.brokers
}

output "spark_master" {
  description = "URL of the Spark cluster's master; null where the driver pumps itself."
  value       = local.spark_cluster ? local.master_url : null
}

output "log_groups" {
  description = "By service."
  value       = { for name, group in aws_cloudwatch_log_group.this : name => group.name }
}

output "cluster" {
  description = "The ECS cluster, for `aws ecs`."
  value       = aws_ecs_cluster.this.name
}

output "tasks_security_group" {
  description = "Of drivers and workers: brokers that are there already must let it in."
  value       = aws_security_group.tasks.id
}
