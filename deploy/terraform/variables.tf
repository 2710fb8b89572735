# The first eight are the AWS kit's, under its names: its main.tfvars works here, too.

variable "region" {
  description = "AWS region of all resources."
  type        = string
  default     = "us-east-1"
}

variable "partition" {
  description = "The partition of the credentials: aws, aws-cn or aws-us-gov; null: whatever it is."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of all resources that can have tags."
  type        = map(string)
  default     = {}
}

variable "account-id" {
  description = "The intended account; credentials of another account are refused."
  type        = string
  validation {
    condition     = can(regex("^[0-9]{12}$", var.account-id))
    error_message = "An account id has twelve digits."
  }
}

variable "app-shorthand-name" {
  description = "Beginning of all names."
  type        = string
}

variable "vpc-id" {
  description = "The VPC to deploy in; Terraform does not create it."
  type        = string
}

variable "source-cluster-bootstrap-broker-string" {
  description = "Brokers of the source, host:port with commas between them."
  type        = string
}

variable "target-cluster-bootstrap-broker-string" {
  description = "Brokers of the target."
  type        = string
}

variable "subnet-ids" {
  description = "Two or three private subnets, each in another zone; null: the VPC's subnets that give no public addresses."
  type        = list(string)
  default     = null
}

variable "source-cluster-arn" {
  description = "ARN of the source, where it is an MSK cluster that is signed in to by IAM."
  type        = string
  default     = null
}

variable "target-cluster-arn" {
  description = "ARN of the target, where it is an MSK cluster that is signed in to by IAM."
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
  description = "Further values of $${NAME} in these files, other than aliases, brokers and patterns."
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
}

variable "worker-spot" {
  description = "Whether workers run on Fargate Spot."
  type        = bool
  default     = false
}

variable "cpu-architecture" {
  description = "X86_64, or ARM64 for Graviton: that for which the images were built (ARCHITECTURE of build_images.sh)."
  type        = string
  default     = "X86_64"
}

variable "grafana-password-secret-arn" {
  description = "ARN of a secret in Secrets Manager that holds the password of Grafana's user admin, as plain text; null only where there is no Grafana."
  type        = string
  default     = null
  validation {
    condition     = var.grafana-password-secret-arn != null || !var.monitoring || var.managed-prometheus != null
    error_message = "Grafana needs a password: make a secret by aws secretsmanager create-secret (docs/deploy/aws.md), or set monitoring = false."
  }
}

variable "spark-secret-arn" {
  description = "ARN of a secret in Secrets Manager, plain text, by which drivers, master and workers know each other; null only where worker-max is 0."
  type        = string
  default     = null
}

variable "bastion" {
  description = "Security group and role of the bastion, and whether its role may pause and throttle (`may_control`); null: nobody opens pages or runs verbs from there."
  type = object({
    security_group_id = string
    role_name         = string
    may_control       = optional(bool, false)
  })
  default = null
}

variable "broker-security-group-ids" {
  description = "Security groups of the brokers, `source` and `target`: rules there let in drivers, workers and the bastion. A side left out must let in tasks_security_group (output) by rules of its own."
  type        = map(string)
  default     = {}
}

variable "monitoring" {
  description = "Whether Prometheus and Grafana run next to the mirror."
  type        = bool
  default     = true
}

variable "open-monitoring" {
  description = "Whether Prometheus also scrapes the brokers of the sides in broker-security-group-ids: MSK's open monitoring, ports 11001 and 11002."
  type        = bool
  default     = false
}

variable "managed-prometheus" {
  description = "A workspace of Amazon Managed Service for Prometheus, instead of Prometheus' disk and Grafana: its ARN, endpoint and id."
  type = object({
    arn          = string
    endpoint     = string
    workspace_id = string
  })
  default = null
}

variable "alerts-topic-arn" {
  description = "ARN of an SNS topic that alerts go to; null: none."
  type        = string
  default     = null
}

variable "alertmanager-targets" {
  description = "Addresses, host:port, of Alertmanagers that you run, which get the alerts."
  type        = list(string)
  default     = []
}

variable "ecr-force-delete" {
  description = "Whether `terraform destroy` deletes the repositories with the images in them; otherwise AWS refuses while there are images."
  type        = bool
  default     = false
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

variable "alertmanager-image" {
  description = "Alertmanager as its makers publish it, for alerts-topic-arn."
  type        = string
  default     = "prom/alertmanager:v0.28.1"
}

variable "aws-cli-image" {
  description = "The AWS CLI as AWS publishes it: it fetches the configuration before a task starts."
  type        = string
  default     = "amazon/aws-cli:2.31.0"
}
