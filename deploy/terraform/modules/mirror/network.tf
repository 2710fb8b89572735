data "aws_subnets" "private" {
  count = var.subnet_ids == null ? 1 : 0
  filter {
    name   = "vpc-id"
    values = [var.vpc_id]
  }
  filter {
    name   = "map-public-ip-on-launch"
    values = ["false"]
  }
}

locals {
  subnet_ids = var.subnet_ids == null ? sort(data.aws_subnets.private[0].ids) : var.subnet_ids
  ports = {
    metrics = 9404, spark = 7077, worker = 7078, driver = 7079, driver_blocks = 7080, executor_blocks = 7081
  }

  # Who connects to whom, and at which ports. A new master calls the drivers and workers of its predecessor.
  # Where a worker has a further executor, Spark takes the next free port, up to 16 on (spark.port.maxRetries).
  open = [
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
    error_message = "Two or three private subnets are needed, each in another zone; there are ${length(local.subnet_ids)}: choose by subnet_ids."
  }
}

# Membership alone opens nothing: brokers let its members in
resource "aws_security_group" "tasks" {
  name_prefix = "${var.name}-tasks-"
  description = "Tasks of ${var.name}"
  vpc_id      = var.vpc_id
  lifecycle { create_before_destroy = true }
}

resource "aws_vpc_security_group_ingress_rule" "among_services" {
  for_each = local.ways

  security_group_id            = module.service[each.value.to].security_group_id
  referenced_security_group_id = module.service[each.value.from].security_group_id
  description                  = each.value.why
  ip_protocol                  = "tcp"
  from_port                    = each.value.first
  to_port                      = each.value.last
}

resource "aws_vpc_security_group_ingress_rule" "bastion" {
  count = var.bastion == null ? 0 : 1

  security_group_id            = module.service["driver"].security_group_id
  referenced_security_group_id = var.bastion.security_group_id
  description                  = "The bastion's tunnel to the live page"
  ip_protocol                  = "tcp"
  from_port                    = local.ports.metrics
  to_port                      = local.ports.metrics
}

# At the brokers' port, as their addresses say it
resource "aws_vpc_security_group_ingress_rule" "brokers" {
  for_each = merge([for side, group in var.broker_security_group_ids : {
    for from in var.bastion == null ? ["tasks"] : ["tasks", "bastion"] : "${side}-${from}" => { side = side, group = group, from = from }
  }]...)

  security_group_id            = each.value.group
  referenced_security_group_id = each.value.from == "tasks" ? aws_security_group.tasks.id : var.bastion.security_group_id
  description                  = "${each.value.from} of ${var.name}"
  ip_protocol                  = "tcp"
  from_port                    = tonumber(regex(":([0-9]+)$", local.cluster[each.value.side].bootstrap_servers)[0])
  to_port                      = tonumber(regex(":([0-9]+)$", local.cluster[each.value.side].bootstrap_servers)[0])
}

resource "aws_security_group" "recovery" {
  count = local.spark_cluster ? 1 : 0

  name_prefix = "${var.name}-recovery-"
  description = "The state of the master of ${var.name}"
  vpc_id      = var.vpc_id
  lifecycle { create_before_destroy = true }
}

resource "aws_vpc_security_group_ingress_rule" "recovery" {
  count = local.spark_cluster ? 1 : 0

  security_group_id            = aws_security_group.recovery[0].id
  referenced_security_group_id = module.service["master"].security_group_id
  description                  = "NFS"
  ip_protocol                  = "tcp"
  from_port                    = 2049
  to_port                      = 2049
}
