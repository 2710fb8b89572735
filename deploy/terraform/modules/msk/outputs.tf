output "arn" {
  description = "The cluster's ARN, of which rights by IAM are made."
  value       = aws_msk_cluster.this.arn
}

output "bootstrap_servers" {
  description = "Brokers, for sign-in by IAM (port 9098)."
  value       = aws_msk_cluster.this.bootstrap_brokers_sasl_iam
}

output "bootstrap_servers_scram" {
  description = "Brokers, for sign-in by SCRAM (port 9096)."
  value       = aws_msk_cluster.this.bootstrap_brokers_sasl_scram
}

output "security_group_id" {
  description = "The brokers' security group. It lets nobody in: rules of the clients', in it, open ports."
  value       = aws_security_group.this.id
}
