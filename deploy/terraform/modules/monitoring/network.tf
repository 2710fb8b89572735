locals {
  # Who connects to whom, and at which ports
  ways = merge(
    { for name, mirror in var.mirrors : "metrics-${name}" => { from = "prometheus", group = mirror.security_group_id, ports = [mirror.port], why = "Scrapes" } },
    { for name, cluster in var.msk_clusters : "brokers-${name}" => { from = "prometheus", group = cluster.security_group_id, ports = [11001, 11002], why = "Open monitoring" } },
    { for from, to in { grafana = "prometheus", prometheus = "alertmanager" } : "${from}-${to}" => {
      from                      = from, group = module.service[to].security_group_id, ports = [local.ports[to]], why = "${from} to ${to}"
    } if contains(local.names, from) && contains(local.names, to) },
  )
}

resource "aws_vpc_security_group_ingress_rule" "services" {
  for_each = local.ways

  security_group_id            = each.value.group
  referenced_security_group_id = module.service[each.value.from].security_group_id
  description                  = each.value.why
  ip_protocol                  = "tcp"
  from_port                    = min(each.value.ports...)
  to_port                      = max(each.value.ports...)
}

resource "aws_vpc_security_group_ingress_rule" "bastion" {
  for_each = { for name in local.names : name => local.ports[name] if var.bastion != null }

  security_group_id            = module.service[each.key].security_group_id
  referenced_security_group_id = var.bastion.security_group_id
  description                  = "The bastion's tunnel to ${each.key}"
  ip_protocol                  = "tcp"
  from_port                    = each.value
  to_port                      = each.value
}
