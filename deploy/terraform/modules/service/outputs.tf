output "security_group_id" {
  description = "Of the service's tasks."
  value       = aws_security_group.this.id
}

output "log_group" {
  description = "Name of the service's log group."
  value       = aws_cloudwatch_log_group.this.name
}

output "service" {
  description = "Name of the service."
  value       = aws_ecs_service.this.name
}
