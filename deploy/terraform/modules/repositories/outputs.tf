output "sparkmirror" {
  description = "Where the image of sparkmirror is pushed to."
  value       = aws_ecr_repository.this["sparkmirror"].repository_url
}

output "prometheus" {
  description = "Where the image of Prometheus is pushed to."
  value       = aws_ecr_repository.this["sparkmirror-prometheus"].repository_url
}
