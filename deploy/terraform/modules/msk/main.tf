# One MSK cluster, for sign-in by IAM and SCRAM. Who may connect is said by rules of the clients', in its security group.

data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

resource "aws_security_group" "this" {
  name_prefix = "${var.name}-msk-"
  description = "Brokers of ${var.name}"
  vpc_id      = var.vpc_id
  lifecycle { create_before_destroy = true }
}

resource "aws_kms_key" "this" {
  description         = "Disks of the MSK cluster ${var.name}"
  enable_key_rotation = true
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "Account"
      Effect    = "Allow"
      Principal = { AWS = "arn:${data.aws_partition.current.partition}:iam::${data.aws_caller_identity.current.account_id}:root" }
      Action    = "kms:*"
      Resource  = "*"
    }]
  })
  # Without the key the disks can't be read
  lifecycle { prevent_destroy = true }
}

resource "aws_cloudwatch_log_group" "this" {
  name              = "/msk/${var.name}"
  retention_in_days = var.log_retention_days
}

resource "aws_msk_configuration" "this" {
  name           = var.name
  kafka_versions = [var.kafka_version]
  # Nothing on retention: Kafka's default (7 days) is what most sources have. A shorter one would delete at the target
  # what the source still has.
  # The kit elects unclean leaders, which loses what was acknowledged, and creates topics by themselves
  server_properties = <<-EOT
    auto.create.topics.enable=false
    default.replication.factor=${length(var.subnet_ids)}
    min.insync.replicas=${length(var.subnet_ids) - 1}
    num.partitions=6
    unclean.leader.election.enable=false
    allow.everyone.if.no.acl.found=false
  EOT
}

resource "aws_msk_cluster" "this" {
  cluster_name           = var.name
  kafka_version          = var.kafka_version
  number_of_broker_nodes = length(var.subnet_ids)
  broker_node_group_info {
    instance_type   = var.instance_type
    client_subnets  = var.subnet_ids
    security_groups = [aws_security_group.this.id]
    storage_info {
      ebs_storage_info { volume_size = var.volume_gib }
    }
  }
  configuration_info {
    arn      = aws_msk_configuration.this.arn
    revision = aws_msk_configuration.this.latest_revision
  }
  client_authentication {
    sasl {
      iam   = true
      scram = true
    }
    unauthenticated = false
  }
  encryption_info {
    encryption_at_rest_kms_key_arn = aws_kms_key.this.arn
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
        log_group = aws_cloudwatch_log_group.this.name
      }
    }
  }
  # Neither `destroy` nor a change that would make another cluster in its stead deletes it
  lifecycle { prevent_destroy = true }
}
