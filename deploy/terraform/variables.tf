# The first seven are the AWS kit's, under its names: its main.tfvars works here, too.

variable "region" {
  description = "Where everything is made."
  type        = string
  default     = "us-east-1"
}

variable "partition" {
  description = "Of ARNs: aws, aws-cn or aws-us-gov."
  type        = string
  default     = "aws"
}

variable "tags" {
  description = "Added to everything that can have tags."
  type        = map(string)
  default     = {}
}

variable "account-id" {
  description = "The account that this is meant for; a plan with credentials of another one warns."
  type        = string
  validation {
    condition     = can(regex("^[0-9]{12}$", var.account-id))
    error_message = "An account id has twelve digits."
  }
}

variable "app-shorthand-name" {
  description = "What all names begin with."
  type        = string
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,19}$", var.app-shorthand-name))
    error_message = "Two to twenty small letters, digits and hyphens: names of buckets and roles are made of it."
  }
}

variable "vpc-id" {
  description = "The VPC to deploy in; it is not made here."
  type        = string
}

variable "source-cluster-bootstrap-broker-string" {
  description = "Brokers of the source, host:port with commas between them; null makes an MSK cluster."
  type        = string
  default     = null
}

variable "target-cluster-bootstrap-broker-string" {
  description = "Brokers of the target; null makes an MSK cluster."
  type        = string
  default     = null
}

variable "subnet-ids" {
  description = "Two or three private subnets, each in another zone; null takes those of the VPC that give no public addresses."
  type        = list(string)
  default     = null
}

variable "source-cluster-arn" {
  description = "Of an MSK cluster that is there already and signs in by IAM; null if it does not."
  type        = string
  default     = null
}

variable "target-cluster-arn" {
  description = "Of an MSK cluster that is there already and signs in by IAM; null if it does not."
  type        = string
  default     = null
}

variable "iam-topics" {
  description = "Names of topics that are copied, as IAM resources have them (* stands for any text)."
  type        = list(string)
  default     = ["*"]
}

variable "iam-groups" {
  description = "Names of consumer groups that are looked after, as IAM resources have them."
  type        = list(string)
  default     = ["*"]
}

variable "source-alias" {
  description = "What the source is called in names of topics and in those that the mirror keeps."
  type        = string
  default     = "msksource"
}

variable "target-alias" {
  description = "What the target is called."
  type        = string
  default     = "mskdest"
}

variable "topics" {
  description = "Java regexes of topics that are copied, with commas between them."
  type        = string
  default     = ".*"
}

variable "groups" {
  description = "Java regexes of consumer groups that are looked after."
  type        = string
  default     = ".*"
}

variable "tasks-max" {
  description = "Most pumps of the flow, over all workers: the source connector's tasks.max."
  type        = number
  default     = 10
}

variable "connector-directory" {
  description = "Connectors' JSON files and their worker.properties; a relative path counts from this directory."
  type        = string
  default     = "../../examples/connectors/iam"
}

variable "connector-values" {
  description = "What more stands for $${NAME} in these files, beside aliases, brokers and patterns."
  type        = map(string)
  default     = {}
}

variable "secrets" {
  description = "Environment variables of driver and workers and the ARNs of the secrets in them, for $${env:NAME}."
  type        = map(string)
  default     = {}
}

variable "image-tag" {
  description = "Of both images, as build_images.sh has pushed them."
  type        = string
}

variable "cpu" {
  description = "CPU units of a driver's and of a worker's task; 1024 are one vCPU."
  type        = number
  default     = 1024
}

variable "memory" {
  description = "Memory of a driver's and of a worker's task, in MiB."
  type        = number
  default     = 4096
}

variable "worker-max" {
  description = "Most workers that autoscaling starts; 0: no Spark cluster, the driver pumps itself."
  type        = number
  default     = 10
  validation {
    condition     = var.worker-max >= 0 && floor(var.worker-max) == var.worker-max
    error_message = "A whole number from 0."
  }
}

variable "grafana-password-secret-arn" {
  description = "Of a secret in Secrets Manager that holds the password of Grafana's user admin, as plain text."
  type        = string
}

variable "bastion-security-group-id" {
  description = "Who may open Prometheus, Grafana and the live page; null: nobody but the tasks."
  type        = string
  default     = null
}

variable "log-retention-days" {
  description = "How long CloudWatch keeps logs."
  type        = number
  default     = 5
}

variable "prometheus-image" {
  description = "Another image of Prometheus, such as prom/prometheus:v3.5.0; null: the one that build_images.sh has pushed."
  type        = string
  default     = null
}

variable "grafana-image" {
  description = "Grafana as its makers publish it."
  type        = string
  default     = "grafana/grafana:12.1.1"
}

variable "aws-cli-image" {
  description = "The AWS CLI as AWS publishes it: it fetches the configuration before a task starts."
  type        = string
  default     = "amazon/aws-cli:2.31.0"
}

variable "msk-kafka-version" {
  description = "Of MSK clusters that are made here."
  type        = string
  default     = "3.9.x"
}

variable "msk-instance-type" {
  description = "Of their brokers."
  type        = string
  default     = "kafka.m7g.large"
}

variable "msk-volume-gib" {
  description = "Disk of each of their brokers."
  type        = number
  default     = 100
}
