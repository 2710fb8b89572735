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
  ports = {
    metrics = 9404, prometheus = 9090, grafana = 3000,
    spark   = 7077, worker = 7078, driver = 7079, driver_blocks = 7080, executor_blocks = 7081
  }

  # Who connects to whom, and at which ports. A new master calls the drivers and workers of its predecessor.
  # Where a worker has a further executor, Spark takes the next free port, up to 16 on (spark.port.maxRetries).
  open = [
    { to = "driver", from = ["prometheus"], ports = [local.ports.metrics], why = "Scrapes" },
    { to = "prometheus", from = ["grafana"], ports = [local.ports.prometheus], why = "Queries" },
    { to = "master", from = ["driver", "worker"], ports = [local.ports.spark], why = "Spark: registration" },
    { to = "worker", from = ["master"], ports = [local.ports.worker], why = "Spark: executors to start" },
    { to = "driver", from = ["master", "worker"], ports = [local.ports.driver], why = "Spark: executors' words to the driver" },
    { to = "driver", from = ["worker"], ports = [local.ports.driver_blocks], why = "Spark: blocks of the driver" },
    { to = "worker", from = ["driver", "worker"], ports = range(local.ports.executor_blocks, local.ports.executor_blocks + 17), why = "Spark: blocks of executors" },
  ]
  ways = merge([for one in local.open : {
    for from in one.from : "${from}-${one.to}-${one.ports[0]}" => { from = from, to = one.to, first = min(one.ports...), last = max(one.ports...), why = one.why }
    if alltrue([for name in [from, one.to] : contains(keys(local.services), name)])
  }]...)
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

# Membership alone opens nothing: brokers let its members in
resource "aws_security_group" "tasks" {
  name_prefix = "${var.app-shorthand-name}-tasks-"
  description = "Tasks of ${var.app-shorthand-name}"
  vpc_id      = var.vpc-id
  lifecycle { create_before_destroy = true }
}

resource "aws_security_group" "service" {
  for_each = local.services

  name_prefix = "${var.app-shorthand-name}-${each.key}-"
  description = "Tasks of the service ${each.key}"
  vpc_id      = var.vpc-id
  lifecycle { create_before_destroy = true }
}

resource "aws_vpc_security_group_ingress_rule" "among_services" {
  for_each = local.ways

  security_group_id            = aws_security_group.service[each.value.to].id
  referenced_security_group_id = aws_security_group.service[each.value.from].id
  description                  = each.value.why
  ip_protocol                  = "tcp"
  from_port                    = each.value.first
  to_port                      = each.value.last
}

resource "aws_vpc_security_group_ingress_rule" "bastion" {
  for_each = { for name, service in { metrics = "driver", prometheus = "prometheus", grafana = "grafana" } : name => service if var.bastion-security-group-id != null }

  security_group_id            = aws_security_group.service[each.value].id
  referenced_security_group_id = var.bastion-security-group-id
  description                  = "The bastion's tunnel to ${each.key}"
  ip_protocol                  = "tcp"
  from_port                    = local.ports[each.key]
  to_port                      = local.ports[each.key]
}

# Brokers may be anywhere: on premises, with another provider
resource "aws_vpc_security_group_egress_rule" "anywhere" {
  for_each = local.services

  security_group_id = aws_security_group.service[each.key].id
  description       = "Brokers, registries, AWS"
  ip_protocol       = "-1"
  cidr_ipv4         = "0.0.0.0/0"
}

resource "aws_security_group" "recovery" {
  count = local.spark_cluster ? 1 : 0

  name_prefix = "${var.app-shorthand-name}-recovery-"
  description = "The state of the master of ${var.app-shorthand-name}"
  vpc_id      = var.vpc-id
  lifecycle { create_before_destroy = true }
}

resource "aws_vpc_security_group_ingress_rule" "recovery" {
  count = local.spark_cluster ? 1 : 0

  security_group_id            = aws_security_group.recovery[0].id
  referenced_security_group_id = aws_security_group.service["master"].id
  description                  = "NFS"
  ip_protocol                  = "tcp"
  from_port                    = 2049
  to_port                      = 2049
}
