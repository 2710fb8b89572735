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
  mirrors = {
    orders = {
      topics            = "orders.*"
      bootstrap_servers = "b-1.eu.example.com:9098"
      arn               = "arn:aws:kafka:us-west-1:012345678910:cluster/eu/0123-1"
    }
    payments = {
      topics            = "payments.*"
      bootstrap_servers = "b-1.us.example.com:9098"
      arn               = "arn:aws:kafka:us-west-1:012345678910:cluster/us/89ab-3"
    }
  }
}

module "repositories" {
  source = "../../modules/repositories"
}

module "mirror" {
  source   = "../../modules/mirror"
  for_each = local.mirrors

  name             = each.key
  vpc_id           = var.vpc_id
  subnet_ids       = var.subnet_ids
  image            = "${module.repositories.sparkmirror}:${var.image_tag}"
  cpu_architecture = "ARM64"
  topics           = each.value.topics
  iam_topics       = ["${each.key}*"]
  worker_max       = 0
  source_cluster = {
    alias             = each.key
    bootstrap_servers = each.value.bootstrap_servers
    arn               = each.value.arn
  }
  target_cluster = {
    alias             = "central"
    bootstrap_servers = "b-1.new.example.com:9098"
    arn               = "arn:aws:kafka:us-west-1:012345678910:cluster/new/4567-2"
  }
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
  alerts_topic     = { arn = aws_sns_topic.alerts.arn }
}

output "urls" {
  description = "Prometheus, Grafana and Alertmanager, and the mirrors' live pages, from within the VPC."
  value       = merge(module.monitoring.urls, { for name, mirror in module.mirror : name => mirror.page })
}
