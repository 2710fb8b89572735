variable "name" {
  description = "Name of the service, and of its container."
  type        = string
}

variable "prefix" {
  description = "Beginning of the names of its roles, log group and task definition."
  type        = string
}

variable "place" {
  description = "Where it runs: the output of the module place."
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
}

variable "vpc_id" {
  description = "The VPC of the subnets."
  type        = string
}

variable "subnet_ids" {
  description = "Subnets of the tasks."
  type        = list(string)
}

variable "security_group_ids" {
  description = "Further security groups of the tasks, other than the service's own."
  type        = list(string)
  default     = []
}

variable "container" {
  description = "What runs: image, arguments, port, health check, directories that it writes to; `part` is its directory of the bucket, `digest` that of the files there."
  type = object({
    image       = string
    command     = list(string)
    port        = number
    probe       = string
    environment = optional(map(string), {})
    secrets     = optional(map(string), {})
    writable    = map(string)
    part        = optional(string)
    digest      = optional(string)
    user        = optional(string)
  })
}

variable "size" {
  description = "CPU units, memory in MiB, disk in GiB (null: Fargate's 20) and CPU architecture of a task."
  type = object({
    cpu          = number
    memory       = number
    disk_gib     = optional(number)
    architecture = string
  })
}

variable "tasks" {
  description = "How many tasks there are, and least and most of them, in percent, while they are replaced."
  type = object({
    count = optional(number, 1)
    least = optional(number, 100)
    most  = optional(number, 200)
  })
  default = {}
}

variable "spot" {
  description = "Whether tasks run on Fargate Spot."
  type        = bool
  default     = false
}

variable "shared" {
  description = "A directory on EFS that survives the task, and its path in the container."
  type = object({
    file_system_id  = string
    access_point_id = string
    path            = string
  })
  default = null
}

variable "statements" {
  description = "Rights of what runs in the task, other than those on its files."
  type = list(object({
    Sid       = string
    Effect    = optional(string, "Allow")
    Action    = list(string)
    Resource  = list(string)
    Condition = optional(map(map(list(string))))
  }))
  default = []
}

variable "log_retention_days" {
  description = "Days for which CloudWatch keeps the log."
  type        = number
}

variable "aws_cli_image" {
  description = "The AWS CLI's image: it fetches the files before the task starts."
  type        = string
}
