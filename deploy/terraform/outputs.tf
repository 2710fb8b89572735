output "urls" {
  description = "Prometheus, Grafana and the live page, from within the VPC: by the bastion's tunnel."
  value       = merge({ page = module.mirror.page }, one(module.monitoring[*].urls))
}

output "connector_uris" {
  description = "S3 URIs of the connectors' files as they are run, for `aws s3 cp`."
  value       = module.mirror.connector_uris
}

output "repository" {
  description = "Where build_images.sh pushes sparkmirror to."
  value       = module.repositories.sparkmirror
}

output "prometheus_repository" {
  description = "Where build_images.sh pushes sparkmirror-prometheus to."
  value       = module.repositories.prometheus
}

output "spark_master" {
  description = "URL of the Spark cluster's master; null where the driver pumps itself."
  value       = module.mirror.spark_master
}

output "log_groups" {
  description = "Names of log groups, by service."
  value       = merge(module.mirror.log_groups, one(module.monitoring[*].log_groups))
}

output "cluster" {
  description = "The ECS cluster, for `aws ecs`."
  value       = module.mirror.cluster
}

output "tasks_security_group" {
  description = "Of drivers and workers: brokers must let it in."
  value       = module.mirror.tasks_security_group_id
}
