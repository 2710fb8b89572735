# Two roles for each service: ECS starts its tasks with the first, and what runs in them has the second.

locals {
  trust = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "ecs-tasks.amazonaws.com" }
      Action    = "sts:AssumeRole"
      Condition = {
        StringEquals = { "aws:SourceAccount" = var.account-id }
        ArnLike      = { "aws:SourceArn" = "arn:${var.partition}:ecs:${var.region}:${var.account-id}:*" }
      }
    }]
  })

  told_arns = { source = var.source-cluster-arn, target = var.target-cluster-arn }
  # Clusters that are signed in to by IAM: topics and groups have ARNs made of the cluster's
  by_iam     = [for side, arn in local.told_arns : side if contains(keys(local.msk), side) || arn != null]
  msk_arns   = { for side in local.by_iam : side => contains(keys(local.msk), side) ? aws_msk_cluster.this[side].arn : local.told_arns[side] }
  topic_arns = { for side, arn in local.msk_arns : side => "${replace(arn, ":cluster/", ":topic/")}/" }
  group_arns = { for side, arn in local.msk_arns : side => "${replace(arn, ":cluster/", ":group/")}/" }

  # docs/security.md, "Rights", in MSK's words
  rights = {
    source = !contains(local.by_iam, "source") ? [] : [
      { Sid = "SourceCluster", Action = ["Connect", "DescribeCluster"], Resource = [local.msk_arns["source"]] },
      {
        Sid      = "SourceTopics"
        Action   = ["DescribeTopic", "DescribeTopicDynamicConfiguration", "ReadData"]
        Resource = [for topic in var.iam-topics : "${local.topic_arns["source"]}${topic}"]
      },
      {
        Sid      = "SourceOwnTopics"
        Action   = ["CreateTopic", "DescribeTopic", "ReadData", "WriteData"]
        Resource = ["${local.topic_arns["source"]}mm2-offset-syncs.${var.target-alias}.internal"]
      },
      {
        Sid      = "SourceGroups"
        Action   = ["DescribeGroup"]
        Resource = [for group in var.iam-groups : "${local.group_arns["source"]}${group}"]
      },
    ]
    target = !contains(local.by_iam, "target") ? [] : [
      {
        Sid      = "TargetCluster"
        Action   = ["Connect", "DescribeCluster", "AlterCluster", "DescribeClusterDynamicConfiguration", "WriteDataIdempotently"]
        Resource = [local.msk_arns["target"]]
      },
      {
        Sid    = "TargetTopics"
        Action = ["CreateTopic", "DescribeTopic", "AlterTopic", "DescribeTopicDynamicConfiguration", "AlterTopicDynamicConfiguration", "ReadData", "WriteData"]
        Resource = [for topic in concat(
          var.iam-topics, [for topic in var.iam-topics : "${var.source-alias}.${topic}"],
          ["mm2-*", "heartbeats", "${var.source-alias}.heartbeats", "${var.source-alias}.checkpoints.internal", "${var.app-shorthand-name}-worker-*"],
        ) : "${local.topic_arns["target"]}${topic}"]
      },
      {
        Sid      = "TargetAppendCheck"
        Action   = ["DeleteTopic"]
        Resource = ["${local.topic_arns["target"]}mm2-sparkmirror-append-check.*"]
      },
      {
        Sid      = "TargetGroups"
        Action   = ["AlterGroup", "DescribeGroup"]
        Resource = [for group in concat(var.iam-groups, ["${var.source-alias}-mm2"]) : "${local.group_arns["target"]}${group}"]
      },
    ]
  }
  kafka = [for right in concat(local.rights["source"], local.rights["target"]) : {
    Sid      = right.Sid
    Effect   = "Allow"
    Action   = [for action in right.Action : "kafka-cluster:${action}"]
    Resource = right.Resource
  }]

  bucket = { for name, service in local.services : name => [for part in compact([service.part]) : {
    Sid      = "Configuration"
    Effect   = "Allow"
    Action   = ["s3:GetObject"]
    Resource = ["${aws_s3_bucket.configuration.arn}/${part}/*"]
  }] }
  list = { for name, service in local.services : name => [for part in compact([service.part]) : {
    Sid       = "ConfigurationNames"
    Effect    = "Allow"
    Action    = ["s3:ListBucket"]
    Resource  = [aws_s3_bucket.configuration.arn]
    Condition = { StringLike = { "s3:prefix" = ["${part}/*"] } }
  }] }
  recovery_rights = [for file_system in aws_efs_file_system.master : {
    Sid       = "Recovery"
    Effect    = "Allow"
    Action    = ["elasticfilesystem:ClientMount", "elasticfilesystem:ClientWrite"]
    Resource  = [file_system.arn]
    Condition = { StringEquals = { "elasticfilesystem:AccessPointArn" = aws_efs_access_point.master[0].arn } }
  }]
  task_rights = { for name in keys(local.services) : name => concat(
    [for right in local.kafka : right if contains(["driver", "worker"], name)],
    local.bucket[name], local.list[name],
    [for right in local.recovery_rights : right if name == "master"],
  ) }
  secret_arns = { for name, service in local.services : name => distinct([for secret in service.secrets : secret.valueFrom]) }
}

resource "aws_iam_role" "execution" {
  for_each = local.services

  name               = "${var.app-shorthand-name}-${each.key}-execution"
  assume_role_policy = local.trust
}

resource "aws_iam_role_policy" "execution" {
  for_each = local.services

  name = "start"
  role = aws_iam_role.execution[each.key].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [{
        Sid      = "Logs"
        Effect   = "Allow"
        Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
        Resource = ["${aws_cloudwatch_log_group.this[each.key].arn}:*"]
      }],
      !contains(keys(local.repositories), each.key) ? [] : [
        # The one action of ECR's that knows no resource
        { Sid = "SignIn", Effect = "Allow", Action = ["ecr:GetAuthorizationToken"], Resource = ["*"] },
        {
          Sid      = "Pull"
          Effect   = "Allow"
          Action   = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
          Resource = [local.repositories[each.key]]
        },
      ],
      [for arn in local.secret_arns[each.key] : {
        Sid      = "Secret${index(local.secret_arns[each.key], arn)}"
        Effect   = "Allow"
        Action   = ["secretsmanager:GetSecretValue"]
        Resource = [arn]
      }],
    )
  })
}

resource "aws_iam_role" "task" {
  for_each = local.services

  name               = "${var.app-shorthand-name}-${each.key}-task"
  assume_role_policy = local.trust
}

resource "aws_iam_role_policy" "task" {
  for_each = { for name, service in local.services : name => service if name != "worker" || length(local.by_iam) > 0 }

  name   = "work"
  role   = aws_iam_role.task[each.key].id
  policy = jsonencode({ Version = "2012-10-17", Statement = local.task_rights[each.key] })
}
