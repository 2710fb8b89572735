# Clusters for those sides that have no brokers yet.

locals {
  msk = { for side, brokers in {
    source = var.source-cluster-bootstrap-broker-string
    target = var.target-cluster-bootstrap-broker-string
  } : side => var.app-shorthand-name if brokers == null }
}

resource "aws_security_group" "msk" {
  count = length(local.msk) > 0 ? 1 : 0

  name_prefix = "${var.app-shorthand-name}-msk-"
  description = "Brokers of ${var.app-shorthand-name}"
  vpc_id      = var.vpc-id
  lifecycle { create_before_destroy = true }
}

resource "aws_vpc_security_group_ingress_rule" "brokers" {
  for_each = { for name, port in { iam = 9098, scram = 9096, jmx_exporter = 11001, node_exporter = 11002 } : name => port if length(local.msk) > 0 }

  security_group_id            = aws_security_group.msk[0].id
  referenced_security_group_id = endswith(each.key, "exporter") ? aws_security_group.service["prometheus"].id : aws_security_group.tasks.id
  description                  = "Tasks to ${each.key}"
  ip_protocol                  = "tcp"
  from_port                    = each.value
  to_port                      = each.value
}

resource "aws_kms_key" "msk" {
  count = length(local.msk) > 0 ? 1 : 0

  description         = "Disks of the MSK clusters of ${var.app-shorthand-name}"
  enable_key_rotation = true
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "Account"
      Effect    = "Allow"
      Principal = { AWS = "arn:${var.partition}:iam::${var.account-id}:root" }
      Action    = "kms:*"
      Resource  = "*"
    }]
  })
}

resource "aws_cloudwatch_log_group" "msk" {
  for_each = local.msk

  name              = "/msk/${each.value}/${each.key}"
  retention_in_days = var.log-retention-days
}

resource "aws_msk_configuration" "this" {
  count = length(local.msk) > 0 ? 1 : 0

  name           = var.app-shorthand-name
  kafka_versions = [var.msk-kafka-version]
  # The kit elects unclean leaders, which loses what was acknowledged, and creates topics by themselves
  server_properties = <<-EOT
    auto.create.topics.enable=false
    default.replication.factor=${length(local.subnet_ids)}
    min.insync.replicas=${length(local.subnet_ids) - 1}
    num.partitions=6
    log.retention.hours=8
    unclean.leader.election.enable=false
    allow.everyone.if.no.acl.found=false
  EOT
}

resource "aws_msk_cluster" "this" {
  for_each = local.msk

  cluster_name           = "${each.value}-${each.key}"
  kafka_version          = var.msk-kafka-version
  number_of_broker_nodes = length(local.subnet_ids)
  broker_node_group_info {
    instance_type   = var.msk-instance-type
    client_subnets  = local.subnet_ids
    security_groups = [aws_security_group.msk[0].id]
    storage_info {
      ebs_storage_info { volume_size = var.msk-volume-gib }
    }
  }
  configuration_info {
    arn      = aws_msk_configuration.this[0].arn
    revision = aws_msk_configuration.this[0].latest_revision
  }
  client_authentication {
    sasl {
      iam   = true
      scram = true
    }
    unauthenticated = false
  }
  encryption_info {
    encryption_at_rest_kms_key_arn = aws_kms_key.msk[0].arn
    encryption_in_transit {
      client_broker = "TLS"
      in_cluster    = true
    }
  }
  open_monitoring {
    prometheus {
      jmx_exporter { enabled_in_broker = true }
      node_exporter { enabled_in_broker = true }
    }
  }
  logging_info {
    broker_logs {
      cloudwatch_logs {
        enabled   = true
        log_group = aws_cloudwatch_log_group.msk[each.key].name
      }
    }
  }
}
