output "place" {
  description = "What services of this place need to know of it."
  value = {
    account_id   = local.account_id
    bucket       = aws_s3_bucket.configuration.bucket
    bucket_arn   = aws_s3_bucket.configuration.arn
    cluster      = aws_ecs_cluster_capacity_providers.this.cluster_name
    namespace    = aws_service_discovery_private_dns_namespace.this.name
    namespace_id = aws_service_discovery_private_dns_namespace.this.id
    partition    = data.aws_partition.current.partition
    region       = local.region
  }
}
