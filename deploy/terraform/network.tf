data "aws_subnets" "private" {
  count = var.subnet-ids == null ? 1 : 0
  filter {
    name   = "vpc-id"
    values = [var.vpc-id]
  }
  filter {
    name   = "map-public-ip-on-launch"
    values = ["false"]
  }
}

locals {
  subnet_ids = var.subnet-ids == null ? sort(data.aws_subnets.private[0].ids) : var.subnet-ids
  namespace  = "${var.app-shorthand-name}.${var.region}.local"
  ports      = { metrics = 9404, spark = 7077, prometheus = 9090, grafana = 3000 }
}

check "subnets" {
  assert {
    condition     = contains([2, 3], length(local.subnet_ids))
    error_message = "Two or three private subnets are needed, each in another zone; there are ${length(local.subnet_ids)}: choose by subnet-ids."
  }
}

resource "aws_service_discovery_private_dns_namespace" "this" {
  name        = local.namespace
  description = "Where tasks of ${var.app-shorthand-name} find each other"
  vpc         = var.vpc-id
}

resource "aws_service_discovery_service" "this" {
  for_each = local.services

  name          = each.key
  force_destroy = true
  dns_config {
    namespace_id   = aws_service_discovery_private_dns_namespace.this.id
    routing_policy = "MULTIVALUE"
    dns_records {
      type = "A"
      ttl  = 10
    }
  }
  # ECS tells Cloud Map of its containers' health
  health_check_custom_config { failure_threshold = 1 }
}

resource "aws_security_group" "tasks" {
  name_prefix = "${var.app-shorthand-name}-tasks-"
  description = "Tasks of ${var.app-shorthand-name}"
  vpc_id      = var.vpc-id
  lifecycle { create_before_destroy = true }
}

# Driver, executors and master each listen on ports that Spark chooses
resource "aws_vpc_security_group_ingress_rule" "among_tasks" {
  security_group_id            = aws_security_group.tasks.id
  referenced_security_group_id = aws_security_group.tasks.id
  description                  = "Tasks among themselves: Spark, scrapes, EFS"
  ip_protocol                  = "tcp"
  from_port                    = 1024
  to_port                      = 65535
}

resource "aws_vpc_security_group_ingress_rule" "bastion" {
  for_each = { for name in ["metrics", "prometheus", "grafana"] : name => local.ports[name] if var.bastion-security-group-id != null }

  security_group_id            = aws_security_group.tasks.id
  referenced_security_group_id = var.bastion-security-group-id
  description                  = "The bastion's tunnel to ${each.key}"
  ip_protocol                  = "tcp"
  from_port                    = each.value
  to_port                      = each.value
}

# Brokers may be anywhere: on premises, with another provider
resource "aws_vpc_security_group_egress_rule" "anywhere" {
  security_group_id = aws_security_group.tasks.id
  description       = "Brokers, registries, AWS"
  ip_protocol       = "-1"
  cidr_ipv4         = "0.0.0.0/0"
}
