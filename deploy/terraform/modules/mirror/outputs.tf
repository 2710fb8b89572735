output "place" {
  description = "The ECS cluster, Cloud Map namespace and bucket, for the module monitoring (`place`)."
  value       = module.place.place
}

output "monitored" {
  description = "Where the drivers' metrics are, for the module monitoring (`mirrors`)."
  value = {
    host              = "driver.${module.place.place.namespace}"
    port              = local.ports.metrics
    security_group_id = module.service["driver"].security_group_id
  }
}

output "page" {
  description = "The live page, from within the VPC: by the bastion's tunnel."
  value       = "http://driver.${module.place.place.namespace}:${local.ports.metrics}/"
}

output "connector_uris" {
  description = "S3 URIs of the connectors' files as they are run, for `aws s3 cp`."
  value       = [for name in sort(keys(local.configuration)) : "s3://${module.place.place.bucket}/${name}"]
}

output "spark_master" {
  description = "URL of the Spark cluster's master; null where the driver pumps itself."
  value       = local.spark_cluster ? local.master_url : null
}

output "log_groups" {
  description = "Names of the services' log groups, by service."
  value       = { for name, service in module.service : name => service.log_group }
}

output "cluster" {
  description = "The ECS cluster, for `aws ecs`."
  value       = module.place.place.cluster
}

output "tasks_security_group_id" {
  description = "Of drivers and workers: brokers must let it in."
  value       = aws_security_group.tasks.id
}

output "subnet_ids" {
  description = "Subnets of the tasks."
  value       = local.subnet_ids
}
