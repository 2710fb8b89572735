# The clusters, in a state of their own: when the migration is over and the mirror is destroyed, they stay.

variable "vpc_id" {
  description = "The VPC of the subnets."
  type        = string
}

variable "subnet_ids" {
  description = "Two or three private subnets, each in another zone."
  type        = list(string)
}

module "msk" {
  source   = "../../../modules/msk"
  for_each = toset(["source", "target"])

  name       = "sample-${each.key}"
  vpc_id     = var.vpc_id
  subnet_ids = var.subnet_ids
}

output "clusters" {
  description = "For the mirror: of each side ARN, brokers and security group."
  value = { for side, cluster in module.msk : side => {
    arn               = cluster.arn
    bootstrap_servers = cluster.bootstrap_servers
    security_group_id = cluster.security_group_id
  } }
}
