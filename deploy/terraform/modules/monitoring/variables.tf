variable "name" {
  description = "Beginning of all names; each monitoring of an account and region has another."
  type        = string
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,19}$", var.name))
    error_message = "Two to twenty small letters, digits and hyphens: names of buckets and roles are made of it."
  }
}

variable "vpc_id" {
  description = "The VPC of the mirrors."
  type        = string
}

variable "subnet_ids" {
  description = "Private subnets of the tasks."
  type        = list(string)
}

variable "place" {
  description = "A mirror's output `place`: the services run in its ECS cluster, and have names in its namespace; null: a cluster, a namespace and a bucket of their own."
  type = object({
    account_id   = string
    bucket       = string
    bucket_arn   = string
    cluster      = string
    namespace    = string
    namespace_id = string
    partition    = string
    region       = string
  })
  default = null
}

variable "mirrors" {
  description = "Outputs `monitored` of the mirrors to scrape, by name."
  type = map(object({
    host              = string
    port              = number
    security_group_id = string
  }))
}

variable "msk_clusters" {
  description = "MSK clusters with open monitoring to scrape, by name: their brokers, and the security group in which rules let Prometheus in."
  type = map(object({
    bootstrap_servers = string
    security_group_id = string
  }))
  default = {}
}

variable "prometheus_image" {
  description = "Prometheus' image, with its tag or digest: the one that build_images.sh has pushed, or prom/prometheus as its makers publish it."
  type        = string
}

variable "managed_prometheus" {
  description = "A workspace of Amazon Managed Service for Prometheus: Prometheus' task only scrapes and sends there, and rules and alerts are the workspace's. `endpoint` is the workspace's, with `/` at its end. With it there is no Grafana here."
  type = object({
    arn          = string
    endpoint     = string
    workspace_id = string
  })
  default = null
}

variable "grafana" {
  description = "Grafana with sparkmirror's dashboards: the ARN of a secret in Secrets Manager that holds the password of its user admin, as plain text, and its image; null: none, such as with Amazon Managed Grafana."
  type = object({
    password_secret_arn = string
    image               = optional(string, "grafana/grafana:12.1.1")
  })
  default = null
  validation {
    condition     = var.grafana == null || var.managed_prometheus == null
    error_message = "With managed_prometheus use Amazon Managed Grafana, or a Grafana that may query the workspace: leave grafana out."
  }
}

variable "alerts_topic" {
  description = "The SNS topic that alerts go to, by an Alertmanager of this module, or by the workspace's; null: none."
  type = object({
    arn                = string
    alertmanager_image = optional(string, "prom/alertmanager:v0.28.1")
  })
  default = null
}

variable "alertmanager_targets" {
  description = "Addresses, host:port, of Alertmanagers that you run: Prometheus sends alerts there, too."
  type        = list(string)
  default     = []
  validation {
    condition     = var.managed_prometheus == null || length(var.alertmanager_targets) == 0
    error_message = "Alerts of managed_prometheus come from the workspace, which sends them to SNS: set alerts_topic."
  }
}

variable "bastion" {
  description = "Members of this security group may open Prometheus, Grafana and Alertmanager."
  type        = object({ security_group_id = string })
  default     = null
}

variable "cpu_architecture" {
  description = "X86_64, or ARM64 for Graviton: that of the images."
  type        = string
  default     = "X86_64"
  validation {
    condition     = contains(["X86_64", "ARM64"], var.cpu_architecture)
    error_message = "X86_64 or ARM64."
  }
}

variable "log_retention_days" {
  description = "Days for which CloudWatch keeps logs."
  type        = number
  default     = 5
}

variable "aws_cli_image" {
  description = "The AWS CLI as AWS publishes it: it fetches the configuration before a task starts."
  type        = string
  default     = "amazon/aws-cli:2.31.0"
}
