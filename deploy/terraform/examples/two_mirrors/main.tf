# Two mirrors in one account, with one pair of repositories and one monitoring, whose alerts go to an SNS topic.

variable "vpc_id" {
  description = "The VPC to deploy in."
  type        = string
}

variable "subnet_ids" {
  description = "Two or three private subnets, each in another zone."
  type        = list(string)
}

variable "image_tag" {
  description = "Tag of both images."
  type        = string
}

variable "grafana_password_secret_arn" {
  description = "ARN of the secret with the password of Grafana's user admin."
  type        = string
}

locals {
  clusters = {
    old = { bootstrap_servers = "b-1.old.example.com:9098", arn = "arn:aws:kafka:us-west-1:012345678910:cluster/old/0123-1" }
    new = { bootstrap_servers = "b-1.new.example.com:9098", arn = "arn:aws:kafka:us-west-1:012345678910:cluster/new/4567-2" }
  }
}

module "repositories" {
  source = "../../modules/repositories"
}

module "mirror" {
  source   = "../../modules/mirror"
  for_each = { orders = "orders.*", payments = "payments.*" }

  name             = each.key
  vpc_id           = var.vpc_id
  subnet_ids       = var.subnet_ids
  image            = "${module.repositories.sparkmirror}:${var.image_tag}"
  cpu_architecture = "ARM64"
  topics           = each.value
  iam_topics       = ["${each.key}*"]
  worker_max       = 0
  source_cluster   = merge(local.clusters.old, { alias = "old" })
  target_cluster   = merge(local.clusters.new, { alias = "new" })
}

resource "aws_sns_topic" "alerts" {
  name              = "mirrors-alerts"
  kms_master_key_id = "alias/aws/sns"
}

module "monitoring" {
  source = "../../modules/monitoring"

  name             = "mirrors"
  vpc_id           = var.vpc_id
  subnet_ids       = var.subnet_ids
  mirrors          = { for name, mirror in module.mirror : name => mirror.monitored }
  prometheus_image = "${module.repositories.prometheus}:${var.image_tag}"
  cpu_architecture = "ARM64"
  grafana          = { password_secret_arn = var.grafana_password_secret_arn }
  alerts           = { topic_arn = aws_sns_topic.alerts.arn }
}

output "urls" {
  description = "Prometheus, Grafana and Alertmanager, and the mirrors' live pages, from within the VPC."
  value       = merge(module.monitoring.urls, { for name, mirror in module.mirror : name => mirror.page })
}
