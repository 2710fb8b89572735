# The first seven are the AWS kit's, under its names: its main.tfvars works here, too.

variable "region" {
  description = "AWS region of all resources."
  type        = string
  default     = "us-east-1"
}

variable "partition" {
  description = "Partition in ARNs: aws, aws-cn or aws-us-gov."
  type        = string
  default     = "aws"
}

variable "tags" {
  description = "Tags of all resources that can have tags."
  type        = map(string)
  default     = {}
}

variable "account-id" {
  description = "The intended account; a plan with credentials of another account warns."
  type        = string
  validation {
    condition     = can(regex("^[0-9]{12}$", var.account-id))
    error_message = "An account id has twelve digits."
  }
}

variable "app-shorthand-name" {
  description = "Beginning of all names."
  type        = string
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,19}$", var.app-shorthand-name))
    error_message = "Two to twenty small letters, digits and hyphens: names of buckets and roles are made of it."
  }
}

variable "vpc-id" {
  description = "The VPC to deploy in; Terraform does not create it."
  type        = string
}

variable "source-cluster-bootstrap-broker-string" {
  description = "Brokers of the source, host:port with commas between them; null: an MSK cluster is created."
  type        = string
  default     = null
}

variable "target-cluster-bootstrap-broker-string" {
  description = "Brokers of the target; null: an MSK cluster is created."
  type        = string
  default     = null
}

variable "subnet-ids" {
  description = "Two or three private subnets, each in another zone; null: the VPC's subnets that give no public addresses."
  type        = list(string)
  default     = null
}

variable "source-cluster-arn" {
  description = "ARN of an existing MSK cluster with sign-in by IAM; null for another cluster."
  type        = string
  default     = null
}

variable "target-cluster-arn" {
  description = "ARN of an existing MSK cluster with sign-in by IAM; null for another cluster."
  type        = string
  default     = null
}

variable "iam-topics" {
  description = "Names of copied topics, as in IAM resources (* stands for any text)."
  type        = list(string)
  default     = ["*"]
}

variable "iam-groups" {
  description = "Names of translated consumer groups, as in IAM resources."
  type        = list(string)
  default     = ["*"]
}

variable "source-alias" {
  description = "The source's alias, as in the names of copies and of the mirror's own topics."
  type        = string
  default     = "msksource"
}

variable "target-alias" {
  description = "The target's alias."
  type        = string
  default     = "mskdest"
}

variable "topics" {
  description = "Java regexes of topics to copy, with commas between them."
  type        = string
  default     = ".*"
}

variable "groups" {
  description = "Java regexes of consumer groups to translate."
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
  description = "Further values of $${NAME} in these files, beside aliases, brokers and patterns."
  type        = map(string)
  default     = {}
}

variable "secrets" {
  description = "Environment variables of driver and workers and the ARNs of the secrets in them, for $${env:NAME}."
  type        = map(string)
  default     = {}
}

variable "image-tag" {
  description = "Tag of both images, as build_images.sh has pushed them."
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
  description = "ARN of a secret in Secrets Manager that holds the password of Grafana's user admin, as plain text."
  type        = string
}

variable "spark-secret-arn" {
  description = "ARN of a secret in Secrets Manager, plain text, by which drivers, master and workers know each other; null only where worker-max is 0."
  type        = string
  default     = null
  validation {
    condition     = length(compact([var.spark-secret-arn])) == 1 || var.worker-max == 0
    error_message = "A Spark cluster needs a secret, or whoever reaches it runs programs on it. Make one by aws secretsmanager create-secret (docs/deploy/aws.md), or set worker-max = 0."
  }
}

variable "bastion-security-group-id" {
  description = "Security group whose members may open Prometheus, Grafana and the live page; null: nobody."
  type        = string
  default     = null
}

variable "log-retention-days" {
  description = "Days for which CloudWatch keeps logs."
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
  description = "Kafka version of MSK clusters that Terraform creates."
  type        = string
  default     = "3.9.x"
}

variable "msk-instance-type" {
  description = "Instance type of the brokers of MSK clusters that Terraform creates."
  type        = string
  default     = "kafka.m7g.large"
}

variable "msk-volume-gib" {
  description = "Disk of each broker of MSK clusters that Terraform creates."
  type        = number
  default     = 100
}
