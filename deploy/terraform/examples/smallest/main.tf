# One mirror between two MSK clusters: two drivers, of which one copies. No workers, no monitoring.

variable "vpc_id" {
  description = "The VPC to deploy in."
  type        = string
}

variable "image" {
  description = "The image of sparkmirror."
  type        = string
}

module "mirror" {
  source = "../../modules/mirror"

  name       = "orders"
  vpc_id     = var.vpc_id
  image      = var.image
  topics     = "orders.*"
  worker_max = 0
  source_cluster = {
    alias             = "primary"
    bootstrap_servers = "b-1.old.example.com:9098,b-2.old.example.com:9098"
    arn               = "arn:aws:kafka:us-west-1:012345678910:cluster/old/0123-1"
  }
  target_cluster = {
    alias             = "backup"
    bootstrap_servers = "b-1.new.example.com:9098"
    arn               = "arn:aws:kafka:us-west-1:012345678910:cluster/new/4567-2"
  }
}

output "brokers_must_let_in" {
  description = "The security group of the drivers."
  value       = module.mirror.tasks_security_group_id
}
