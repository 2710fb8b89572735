# ECS starts the tasks with the first role, and what runs in them has the second.

locals {
  trust = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "ecs-tasks.amazonaws.com" }
      Action    = "sts:AssumeRole"
      Condition = {
        StringEquals = { "aws:SourceAccount" = var.place.account_id }
        ArnLike      = { "aws:SourceArn" = "arn:${var.place.partition}:ecs:${var.place.region}:${var.place.account_id}:*" }
      }
    }]
  })

  # Of images in ECR: their registries' accounts and regions, and the repositories
  registry     = "^([0-9]{12})\\.dkr\\.ecr(?:-fips)?\\.([a-z0-9-]+)\\.[a-z.-]+/([^:@]+)"
  repositories = distinct([for image in [var.container.image, var.aws_cli_image] : regex(local.registry, image) if can(regex(local.registry, image))])
  secret_arns  = distinct(values(var.container.secrets))

  part = var.container.part == null ? "" : var.container.part
  reading = [for right in [
    {
      Sid       = "Configuration"
      Effect    = "Allow"
      Action    = ["s3:GetObject"]
      Resource  = ["${var.place.bucket_arn}/${local.part}/*"]
      Condition = null
    },
    {
      Sid       = "ConfigurationNames"
      Effect    = "Allow"
      Action    = ["s3:ListBucket"]
      Resource  = [var.place.bucket_arn]
      Condition = { StringLike = { "s3:prefix" = ["${local.part}/*"] } }
    },
  ] : right if local.part != ""]
  statements = [for statement in concat(var.statements, local.reading) : { for key, value in statement : key => value if value != null }]
}

resource "aws_iam_role" "execution" {
  name               = "${var.prefix}-${var.name}-execution"
  assume_role_policy = local.trust
}

resource "aws_iam_role_policy" "execution" {
  name = "start"
  role = aws_iam_role.execution.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [{
        Sid      = "Logs"
        Effect   = "Allow"
        Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
        Resource = ["${aws_cloudwatch_log_group.this.arn}:*"]
      }],
      length(local.repositories) == 0 ? [] : [
        # The one action of ECR's that knows no resource
        { Sid = "SignIn", Effect = "Allow", Action = ["ecr:GetAuthorizationToken"], Resource = ["*"] },
        {
          Sid      = "Pull"
          Effect   = "Allow"
          Action   = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
          Resource = [for told in local.repositories : "arn:${var.place.partition}:ecr:${told[1]}:${told[0]}:repository/${told[2]}"]
        },
      ],
      [for arn in local.secret_arns : {
        Sid      = "Secret${index(local.secret_arns, arn)}"
        Effect   = "Allow"
        Action   = ["secretsmanager:GetSecretValue"]
        Resource = [arn]
      }],
    )
  })
}

resource "aws_iam_role" "task" {
  name               = "${var.prefix}-${var.name}-task"
  assume_role_policy = local.trust
}

resource "aws_iam_role_policy" "task" {
  count = length(local.statements) > 0 ? 1 : 0

  name   = "work"
  role   = aws_iam_role.task.id
  policy = jsonencode({ Version = "2012-10-17", Statement = local.statements })
}
