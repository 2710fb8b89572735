# Rights on Kafka: those of drivers and workers, and those of people at the bastion.

locals {
  # A missing ARN stops the plan (configuration.tf)
  arns       = { for side in local.by_iam : side => coalesce(local.cluster[side].arn, "missing:cluster/") }
  topic_arns = { for side, arn in local.arns : side => "${replace(arn, ":cluster/", ":topic/")}/" }
  group_arns = { for side, arn in local.arns : side => "${replace(arn, ":cluster/", ":group/")}/" }

  # docs/security.md, "Rights", in MSK's words
  rights = {
    source = !contains(local.by_iam, "source") ? [] : [
      { Sid = "SourceCluster", Action = ["Connect", "DescribeCluster"], Resource = [local.arns["source"]] },
      {
        Sid      = "SourceTopics"
        Action   = ["DescribeTopic", "DescribeTopicDynamicConfiguration", "ReadData"]
        Resource = [for topic in var.iam_topics : "${local.topic_arns["source"]}${topic}"]
      },
      {
        Sid      = "SourceOwnTopics"
        Action   = ["CreateTopic", "DescribeTopic", "ReadData", "WriteData"]
        Resource = ["${local.topic_arns["source"]}mm2-offset-syncs.${var.target_cluster.alias}.internal"]
      },
      {
        Sid      = "SourceGroups"
        Action   = ["DescribeGroup"]
        Resource = [for group in var.iam_groups : "${local.group_arns["source"]}${group}"]
      },
    ]
    target = !contains(local.by_iam, "target") ? [] : [
      {
        Sid      = "TargetCluster"
        Action   = ["Connect", "DescribeCluster", "AlterCluster", "DescribeClusterDynamicConfiguration", "WriteDataIdempotently"]
        Resource = [local.arns["target"]]
      },
      {
        Sid    = "TargetTopics"
        Action = ["CreateTopic", "DescribeTopic", "AlterTopic", "DescribeTopicDynamicConfiguration", "AlterTopicDynamicConfiguration", "ReadData", "WriteData"]
        Resource = [for topic in concat(
          var.iam_topics, [for topic in var.iam_topics : "${var.source_cluster.alias}.${topic}"],
          ["mm2-*", "heartbeats", "${var.source_cluster.alias}.heartbeats", "${var.source_cluster.alias}.checkpoints.internal", "${var.name}-worker-*"],
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
        Resource = [for group in concat(var.iam_groups, ["${var.source_cluster.alias}-mm2"]) : "${local.group_arns["target"]}${group}"]
      },
    ]
  }
  every = concat(local.rights["source"], local.rights["target"])
  kafka = [for right in local.every : {
    Sid       = right.Sid
    Action    = [for action in right.Action : "kafka-cluster:${action}"]
    Resource  = right.Resource
    Condition = null
  }]
  recovery_rights = [for file_system in aws_efs_file_system.master : {
    Sid       = "Recovery"
    Action    = ["elasticfilesystem:ClientMount", "elasticfilesystem:ClientWrite"]
    Resource  = [file_system.arn]
    Condition = { StringEquals = { "elasticfilesystem:AccessPointArn" = [aws_efs_access_point.master[0].arn] } }
  }]

  # What `status`, `top`, `losses` and `lint --connect` read: the same, without what changes anything, which `lint --connect` calls forbidden
  reading = { for right in local.every : right.Sid => {
    Sid      = right.Sid
    Effect   = "Allow"
    Action   = [for action in right.Action : "kafka-cluster:${action}" if !can(regex("^(Create|Alter|Write|Delete)", action))]
    Resource = right.Resource
  } }
  controlling = [for arn in values({ for side, arn in local.topic_arns : side => arn if side == "target" && try(var.bastion.may_control, false) }) : {
    Sid      = "Control"
    Effect   = "Allow"
    Action   = ["kafka-cluster:WriteData"]
    Resource = ["${arn}mm2-sparkmirror-control.*"]
  }]
  registry   = "^([0-9]{12})\\.dkr\\.ecr(?:-fips)?\\.([a-z0-9-]+)\\.[a-z.-]+/([^:@]+)"
  repository = try(regex(local.registry, var.image), null)
}

resource "aws_iam_role_policy" "bastion" {
  count = var.bastion == null ? 0 : 1

  name = "${var.name}-mirror"
  role = var.bastion.role_name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [
        {
          Sid      = "Configuration"
          Effect   = "Allow"
          Action   = ["s3:GetObject"]
          Resource = ["${module.place.place.bucket_arn}/connector/*"]
        },
        {
          Sid       = "ConfigurationNames"
          Effect    = "Allow"
          Action    = ["s3:ListBucket"]
          Resource  = [module.place.place.bucket_arn]
          Condition = { StringLike = { "s3:prefix" = ["connector/*"] } }
        },
      ],
      local.repository == null ? [] : [
        { Sid = "SignIn", Effect = "Allow", Action = ["ecr:GetAuthorizationToken"], Resource = ["*"] },
        {
          Sid      = "Pull"
          Effect   = "Allow"
          Action   = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
          Resource = ["arn:${module.place.place.partition}:ecr:${local.repository[1]}:${local.repository[0]}:repository/${local.repository[2]}"]
        },
      ],
      [for right in values(local.reading) : right if length(right.Action) > 0],
      local.controlling,
    )
  })
}
