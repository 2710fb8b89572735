output "urls" {
  description = "Addresses of the services, by service, from within the VPC: by the bastion's tunnel."
  value       = local.urls
}

output "log_groups" {
  description = "Names of the services' log groups, by service."
  value       = { for name, service in module.service : name => service.log_group }
}
