# The mirror between the clusters of ../clusters, which are known by that state's output:
#   terraform -chdir=../clusters output -json clusters | jq '{clusters: .}' > clusters.auto.tfvars.json

variable "clusters" {
  description = "The output `clusters` of ../clusters."
  type = map(object({
    arn               = string
    bootstrap_servers = string
    security_group_id = string
  }))
}

variable "vpc_id" {
  description = "The VPC to deploy in."
  type        = string
}

variable "image" {
  description = "The image of sparkmirror."
  type        = string
}

variable "prometheus_image" {
  description = "Prometheus' image."
  type        = string
  default     = "prom/prometheus:v3.5.0"
}

variable "spark_secret_arn" {
  description = "ARN of the secret by which drivers, master and workers know each other."
  type        = string
}

module "mirror" {
  source = "../../../modules/mirror"

  name                      = "sample"
  vpc_id                    = var.vpc_id
  image                     = var.image
  spark_secret_arn          = var.spark_secret_arn
  worker_max                = 4
  tasks_max                 = 4
  worker_spot               = true
  source_cluster            = { bootstrap_servers = var.clusters.source.bootstrap_servers, arn = var.clusters.source.arn }
  target_cluster            = { bootstrap_servers = var.clusters.target.bootstrap_servers, arn = var.clusters.target.arn }
  broker_security_group_ids = { for side, cluster in var.clusters : side => cluster.security_group_id }
}

module "monitoring" {
  source = "../../../modules/monitoring"

  name             = "sample"
  vpc_id           = var.vpc_id
  subnet_ids       = module.mirror.subnet_ids
  place            = module.mirror.place
  mirrors          = { sample = module.mirror.monitored }
  msk_clusters     = { for side, cluster in var.clusters : side => { bootstrap_servers = cluster.bootstrap_servers, security_group_id = cluster.security_group_id } }
  prometheus_image = var.prometheus_image
}

output "urls" {
  description = "Prometheus and the live page, from within the VPC."
  value       = merge(module.monitoring.urls, { page = module.mirror.page })
}
