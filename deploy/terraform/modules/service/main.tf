# One service on Fargate, with its name, its security group, its log and its roles.

locals {
  directory = "/etc/sparkmirror"
  mounts    = [for path, volume in var.container.writable : { sourceVolume = volume, containerPath = path, readOnly = false }]
  files     = var.container.part == null ? [] : [{ sourceVolume = "configuration", containerPath = local.directory, readOnly = false }]
  log = {
    logDriver = "awslogs"
    options = {
      awslogs-group         = aws_cloudwatch_log_group.this.name
      awslogs-region        = var.place.region
      awslogs-stream-prefix = var.name
    }
  }

  # As root, since what Fargate mounts is root's. It has no other rights than the task's, and ends before the others start.
  prepare = {
    name                   = "prepare"
    image                  = var.aws_cli_image
    essential              = false
    readonlyRootFilesystem = true
    entryPoint             = ["/bin/sh", "-ec"]
    command = [join("\n", compact([
      "chmod 1777 ${join(" ", sort(keys(var.container.writable)))}",
      var.container.part == null ? "" : "aws s3 cp --recursive --only-show-errors s3://${var.place.bucket}/${var.container.part}/ ${local.directory}",
    ]))]
    # A new task definition, and so a rolling deployment, wherever a file has changed
    environment      = var.container.part == null ? [] : [{ name = "CONFIGURATION_DIGEST", value = var.container.digest }]
    mountPoints      = concat(local.mounts, local.files)
    logConfiguration = local.log
  }
  # Images of Prometheus and Grafana have busybox' wget, ours has Python
  health = (var.container.user == null ?
    ["CMD", "wget", "-q", "-T", "5", "-O", "/dev/null", var.container.probe] :
  ["CMD", "python3", "-c", "from urllib.request import urlopen; urlopen('${var.container.probe}', timeout=5)"])
  container = {
    name                   = var.name
    image                  = var.container.image
    essential              = true
    user                   = var.container.user
    readonlyRootFilesystem = true
    command                = var.container.command
    stopTimeout            = var.name == "worker" ? 120 : 60 # a worker is drained; 120 is Fargate's most
    portMappings           = [{ containerPort = var.container.port, protocol = "tcp" }]
    environment            = [for key, value in var.container.environment : { name = key, value = value }]
    secrets                = [for key, arn in var.container.secrets : { name = key, valueFrom = arn }]
    mountPoints = concat(
      local.mounts,
      [for mount in local.files : merge(mount, { readOnly = true })],
      var.shared == null ? [] : [{ sourceVolume = "recovery", containerPath = var.shared.path, readOnly = false }],
    )
    dependsOn = [{ containerName = "prepare", condition = "SUCCESS" }]
    healthCheck = {
      command     = local.health
      interval    = 15
      timeout     = 10
      retries     = 4
      startPeriod = 120
    }
    linuxParameters  = { initProcessEnabled = true }
    logConfiguration = local.log
  }
}

resource "aws_cloudwatch_log_group" "this" {
  name              = "/ecs/${var.prefix}/${var.name}"
  retention_in_days = var.log_retention_days
}

resource "aws_security_group" "this" {
  name_prefix = "${var.prefix}-${var.name}-"
  description = "Tasks of the service ${var.name}"
  vpc_id      = var.vpc_id
  lifecycle { create_before_destroy = true }
}

# Brokers may be anywhere: on premises, with another provider
resource "aws_vpc_security_group_egress_rule" "anywhere" {
  security_group_id = aws_security_group.this.id
  description       = "Brokers, registries, AWS"
  ip_protocol       = "-1"
  cidr_ipv4         = "0.0.0.0/0"
}

resource "aws_service_discovery_service" "this" {
  name          = var.name
  force_destroy = true
  dns_config {
    namespace_id   = var.place.namespace_id
    routing_policy = "MULTIVALUE"
    dns_records {
      type = "A"
      ttl  = 10
    }
  }
  # ECS tells Cloud Map of its containers' health
  health_check_custom_config { failure_threshold = 1 }
}

resource "aws_ecs_task_definition" "this" {
  family                   = "${var.prefix}-${var.name}"
  requires_compatibilities = ["FARGATE"]
  network_mode             = "awsvpc"
  cpu                      = var.size.cpu
  memory                   = var.size.memory
  execution_role_arn       = aws_iam_role.execution.arn
  task_role_arn            = aws_iam_role.task.arn
  container_definitions    = jsonencode([local.prepare, { for key, value in local.container : key => value if value != null }])
  runtime_platform {
    operating_system_family = "LINUX"
    cpu_architecture        = var.size.architecture
  }
  dynamic "ephemeral_storage" {
    for_each = var.size.disk_gib == null ? [] : [var.size.disk_gib]
    content { size_in_gib = ephemeral_storage.value }
  }
  dynamic "volume" {
    for_each = toset(concat(values(var.container.writable), [for mount in local.files : mount.sourceVolume]))
    content { name = volume.value }
  }
  dynamic "volume" {
    for_each = var.shared == null ? [] : [var.shared]
    content {
      name = "recovery"
      efs_volume_configuration {
        file_system_id     = volume.value.file_system_id
        transit_encryption = "ENABLED"
        authorization_config {
          access_point_id = volume.value.access_point_id
          iam             = "ENABLED"
        }
      }
    }
  }
}

resource "aws_ecs_service" "this" {
  name                               = var.name
  cluster                            = var.place.cluster
  task_definition                    = aws_ecs_task_definition.this.arn
  launch_type                        = var.spot ? null : "FARGATE"
  desired_count                      = var.tasks.count
  deployment_minimum_healthy_percent = var.tasks.least
  deployment_maximum_percent         = var.tasks.most
  availability_zone_rebalancing      = var.tasks.most > 100 ? "ENABLED" : "DISABLED"
  propagate_tags                     = "SERVICE"
  dynamic "capacity_provider_strategy" {
    for_each = var.spot ? ["FARGATE_SPOT"] : []
    content {
      capacity_provider = capacity_provider_strategy.value
      weight            = 1
    }
  }
  deployment_circuit_breaker {
    enable   = true
    rollback = true
  }
  network_configuration {
    subnets          = var.subnet_ids
    security_groups  = concat([aws_security_group.this.id], var.security_group_ids)
    assign_public_ip = false
  }
  service_registries { registry_arn = aws_service_discovery_service.this.arn }
  # How many workers there are is autoscaling's
  lifecycle { ignore_changes = [desired_count] }
  depends_on = [aws_iam_role_policy.execution, aws_iam_role_policy.task]
}
