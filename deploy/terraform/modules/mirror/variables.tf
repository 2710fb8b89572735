variable "name" {
  description = "Name of the mirror, and beginning of all names; each mirror of an account and region has another."
  type        = string
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,19}$", var.name))
    error_message = "Two to twenty small letters, digits and hyphens: names of buckets and roles are made of it."
  }
}

variable "vpc_id" {
  description = "The VPC to deploy in."
  type        = string
}

variable "subnet_ids" {
  description = "Two or three private subnets, each in another zone; null: the VPC's subnets that give no public addresses."
  type        = list(string)
  default     = null
}

variable "source_cluster" {
  description = "The source: its alias, as in the names of copies and of the mirror's own topics; brokers, host:port with commas between them; the ARN of an MSK cluster that is signed in to by IAM."
  type = object({
    alias             = optional(string, "msksource")
    bootstrap_servers = string
    arn               = optional(string)
  })
}

variable "target_cluster" {
  description = "The target, in the same way."
  type = object({
    alias             = optional(string, "mskdest")
    bootstrap_servers = string
    arn               = optional(string)
  })
}

variable "broker_security_group_ids" {
  description = "Security groups of the brokers by side, `source` and `target`: rules are put there that let in drivers, workers and the bastion. A side that is left out must let in `tasks_security_group_id` (output) by rules of its own."
  type        = map(string)
  default     = {}
  validation {
    condition     = length(setsubtract(keys(var.broker_security_group_ids), ["source", "target"])) == 0
    error_message = "The sides are source and target."
  }
  validation {
    condition     = length(distinct(values(var.broker_security_group_ids))) == length(var.broker_security_group_ids)
    error_message = "Where both clusters have one security group, name it for one side only: AWS refuses the same rule twice."
  }
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

variable "iam_topics" {
  description = "Names of copied topics, as in IAM resources (* stands for any text)."
  type        = list(string)
  default     = ["*"]
}

variable "iam_groups" {
  description = "Names of translated consumer groups, as in IAM resources."
  type        = list(string)
  default     = ["*"]
}

variable "tasks_max" {
  description = "Most pumps of the flow, over all workers: the source connector's tasks.max."
  type        = number
  default     = 10
  validation {
    condition     = var.tasks_max >= 1 && floor(var.tasks_max) == var.tasks_max
    error_message = "A whole number from 1."
  }
  validation {
    condition     = var.worker_max == 0 || var.tasks_max <= var.worker_max * max(1, floor(var.cpu / 1024))
    error_message = "tasks_max is ${var.tasks_max}, but ${var.worker_max} workers of ${var.cpu} CPU units have slots for ${var.worker_max * max(1, floor(var.cpu / 1024))} pumps, one a vCPU: the rest would never start. Raise worker_max or cpu, or lower tasks_max."
  }
  validation {
    condition     = var.worker_max > 0 || 360 + 220 * var.tasks_max <= var.memory
    error_message = "Without workers the driver pumps itself: ${var.tasks_max} pumps need ${360 + 220 * var.tasks_max} MiB, memory is ${var.memory}. Raise memory or lower tasks_max."
  }
}

variable "connector_directory" {
  description = "Directory of connectors' JSON files and their worker.properties; null: those for sign-in by IAM, of this repository's examples."
  type        = string
  default     = null
}

variable "connector_values" {
  description = "Further values of $${NAME} in these files, other than aliases, brokers and patterns."
  type        = map(string)
  default     = {}
}

variable "secrets" {
  description = "Environment variables of driver and workers and the ARNs of the secrets in them, for $${env:NAME}."
  type        = map(string)
  default     = {}
}

variable "image" {
  description = "The image of sparkmirror, with its tag or digest. If it is in ECR, the right to pull it is given."
  type        = string
}

variable "cpu" {
  description = "CPU units of a driver's and of a worker's task; 1024 are one vCPU."
  type        = number
  default     = 1024
  validation {
    condition     = contains([256, 512, 1024, 2048, 4096, 8192, 16384], var.cpu)
    error_message = "Fargate has tasks of 256, 512, 1024, 2048, 4096, 8192 and 16384 CPU units."
  }
}

variable "memory" {
  description = "Memory of a driver's and of a worker's task, in MiB, as Fargate has it for that CPU."
  type        = number
  default     = 4096
  validation {
    condition = contains(lookup({
      256   = [512, 1024, 2048]
      512   = range(1024, 4097, 1024)
      1024  = range(2048, 8193, 1024)
      2048  = range(4096, 16385, 1024)
      4096  = range(8192, 30721, 1024)
      8192  = range(16384, 61441, 4096)
      16384 = range(32768, 122881, 8192)
    }, var.cpu, []), var.memory)
    error_message = "Fargate has no task of ${var.cpu} CPU units and ${var.memory} MiB. MiB by CPU units: 256: 512, 1024, 2048; 512: 1024 to 4096; 1024: 2048 to 8192; 2048: 4096 to 16384; 4096: 8192 to 30720, all by 1024; 8192: 16384 to 61440 by 4096; 16384: 32768 to 122880 by 8192."
  }
  validation {
    condition     = var.memory >= 2048
    error_message = "memory is ${var.memory} MiB: a worker needs 2048 at least, 1024 of them for its own JVM and Python; so does a driver."
  }
}

variable "cpu_architecture" {
  description = "X86_64, or ARM64 for Graviton: that of the image."
  type        = string
  default     = "X86_64"
  validation {
    condition     = contains(["X86_64", "ARM64"], var.cpu_architecture)
    error_message = "X86_64 or ARM64."
  }
}

variable "worker_max" {
  description = "Most workers that autoscaling starts; 0: no Spark cluster, the driver pumps itself."
  type        = number
  default     = 10
  validation {
    condition     = var.worker_max >= 0 && floor(var.worker_max) == var.worker_max
    error_message = "A whole number from 0."
  }
}

variable "worker_spot" {
  description = "Whether workers run on Fargate Spot: cheaper, and AWS may end them with two minutes' notice. Drivers and master never do."
  type        = bool
  default     = false
}

variable "spark_secret_arn" {
  description = "ARN of a secret in Secrets Manager, plain text, by which drivers, master and workers know each other; null only where worker_max is 0."
  type        = string
  default     = null
  validation {
    condition     = length(compact([var.spark_secret_arn])) == 1 || var.worker_max == 0
    error_message = "A Spark cluster needs a secret, or whoever reaches it runs programs on it. Make one by aws secretsmanager create-secret (docs/deploy/aws.md), or set worker_max = 0."
  }
}

variable "bastion" {
  description = "From where people work: members of the security group may open the live page and connect to the brokers; the role may fetch the connectors' files, pull the image and read both clusters, and with `may_control` also write to the control topic (pause, throttle, log-level)."
  type = object({
    security_group_id = string
    role_name         = string
    may_control       = optional(bool, false)
  })
  default = null
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
