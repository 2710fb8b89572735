variable "name" {
  description = "Name of the ECS cluster, and beginning of the other names."
  type        = string
}

variable "vpc_id" {
  description = "The VPC in which the names of the tasks are known."
  type        = string
}
