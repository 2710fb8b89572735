variable "name" {
  description = "Name of the cluster, and beginning of the other names."
  type        = string
}

variable "vpc_id" {
  description = "The VPC of the subnets."
  type        = string
}

variable "subnet_ids" {
  description = "Two or three private subnets, each in another zone: a broker in each."
  type        = list(string)
  validation {
    condition     = contains([2, 3], length(var.subnet_ids))
    error_message = "Two or three private subnets are needed, each in another zone."
  }
}

variable "kafka_version" {
  description = "Kafka version of the brokers."
  type        = string
  default     = "3.9.x"
}

variable "instance_type" {
  description = "Instance type of the brokers."
  type        = string
  default     = "kafka.m7g.large"
}

variable "volume_gib" {
  description = "Disk of each broker, in GiB."
  type        = number
  default     = 100
}

variable "log_retention_days" {
  description = "Days for which CloudWatch keeps the brokers' logs; records are kept as Kafka's default says."
  type        = number
  default     = 5
}
