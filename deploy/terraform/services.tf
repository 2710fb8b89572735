# Drivers, and unless worker-max is 0 a Spark standalone cluster for them; Prometheus and Grafana beside them.

locals {
  image        = "${aws_ecr_repository.sparkmirror.repository_url}:${var.image-tag}"
  prometheus   = coalesce(var.prometheus-image, "${aws_ecr_repository.prometheus.repository_url}:${var.image-tag}")
  slots        = max(1, floor(var.cpu / 1024))
  worker_mib   = var.memory - 1024 # the rest is for the worker's own JVM and the pumps' Python
  executor_mib = min(1024, local.worker_mib)
  master_url   = "spark://master.${local.namespace}:${local.ports.spark}"
  directories  = { configuration = "/etc/sparkmirror", state = "/var/lib/sparkmirror" }
  secrets      = [for name, arn in var.secrets : { name = name, valueFrom = arn }]
  # Spark's own variable: on a command line each process of the task could read it
  spark_secret  = [for arn in compact([local.spark_cluster ? var.spark-secret-arn : null]) : { name = "_SPARK_AUTH_SECRET", valueFrom = arn }]
  authenticated = "-Dspark.authenticate=true -Dspark.network.crypto.enabled=true"

  writable = { "/tmp" = "tmp", (local.directories.state) = "state" }

  spark_cluster = var.worker-max > 0
  services = merge(
    {
      driver = {
        image       = local.image
        cpu         = var.cpu
        memory      = var.memory
        count       = 2 # one works, the other stands by: the lease at the target says which
        least       = 50
        most        = 200
        command     = ["run", local.directories.configuration, "--metrics-port", tostring(local.ports.metrics), "--metrics-profile", "aws"]
        port        = local.ports.metrics
        probe       = "http://127.0.0.1:${local.ports.metrics}/health"
        environment = {}
        secrets     = concat(local.secrets, local.spark_secret)
        writable    = local.writable
        part        = "connector"
        user        = "10001"
        disk_gib    = null
      }
      prometheus = {
        image       = local.prometheus
        cpu         = 2048
        memory      = 4096
        count       = 1
        least       = 100
        most        = 200
        command     = ["--config.file=${local.directories.configuration}/prometheus.yml", "--storage.tsdb.path=/prometheus"]
        port        = local.ports.prometheus
        probe       = "http://127.0.0.1:${local.ports.prometheus}/-/healthy"
        environment = {}
        secrets     = []
        writable    = { "/prometheus" = "state" }
        part        = "prometheus"
        user        = null
        disk_gib    = 100
      }
      grafana = {
        image   = var.grafana-image
        cpu     = 1024
        memory  = 3072
        count   = 1
        least   = 100
        most    = 200
        command = []
        port    = local.ports.grafana
        probe   = "http://127.0.0.1:${local.ports.grafana}/api/health"
        environment = {
          GF_PATHS_PROVISIONING = "${local.directories.configuration}/provisioning"
          GF_LOG_MODE           = "console"
        }
        secrets  = [{ name = "GF_SECURITY_ADMIN_PASSWORD", valueFrom = var.grafana-password-secret-arn }]
        writable = { "/tmp" = "tmp", "/var/lib/grafana" = "state" }
        part     = "grafana"
        user     = null
        disk_gib = null
      }
    },
    { for name, service in {
      # One at a time: two would write the same recovery files
      master = {
        image   = local.image
        cpu     = 256
        memory  = 1024
        count   = 1
        least   = 0
        most    = 100
        command = ["master"]
        port    = local.ports.spark
        probe   = "http://127.0.0.1:8080/json/"
        environment = {
          SPARK_DAEMON_MEMORY = "512m"
          SPARK_MASTER_OPTS   = "-Dspark.deploy.recoveryMode=FILESYSTEM -Dspark.deploy.recoveryDirectory=${local.directories.state} -Dspark.master.rest.enabled=false ${local.authenticated}"
        }
        secrets  = local.spark_secret
        writable = { "/tmp" = "tmp" } # its state is on EFS
        part     = null
        user     = "10001"
        disk_gib = null
      }
      worker = {
        image   = local.image
        cpu     = var.cpu
        memory  = var.memory
        count   = 1
        least   = 100
        most    = 200
        command = ["worker", local.master_url]
        port    = 8081
        probe   = "http://127.0.0.1:8081/json/"
        environment = {
          SPARK_DAEMON_MEMORY = "512m"
          SPARK_WORKER_CORES  = tostring(local.slots)
          SPARK_WORKER_MEMORY = "${local.worker_mib}m"
          SPARK_WORKER_DIR    = "${local.directories.state}/work"
          SPARK_WORKER_PORT   = tostring(local.ports.worker)
          # A master that was replaced has another address, but the same name
          SPARK_WORKER_OPTS = "-Dspark.worker.preferConfiguredMasterAddress=true ${local.authenticated}"
        }
        secrets  = concat(local.secrets, local.spark_secret)
        writable = local.writable
        part     = null
        user     = "10001"
        disk_gib = null
      }
    } : name => service if local.spark_cluster },
  )

  # As root, since what Fargate mounts is root's. It has no other rights than the task's, and ends before the others start.
  prepare = {
    for name, service in local.services : name => {
      name                   = "prepare"
      image                  = var.aws-cli-image
      essential              = false
      readonlyRootFilesystem = true
      entryPoint             = ["/bin/sh", "-ec"]
      command = [join("\n", compact([
        "chmod 1777 ${join(" ", sort(keys(service.writable)))}",
        service.part == null ? "" : "aws s3 cp --recursive --only-show-errors s3://${aws_s3_bucket.configuration.bucket}/${service.part}/ ${local.directories.configuration}",
      ]))]
      environment      = [for digest in compact([service.part == null ? "" : local.digests[service.part]]) : { name = "CONFIGURATION_DIGEST", value = digest }]
      mountPoints      = concat(local.mounts[name], [for _ in compact([service.part]) : { sourceVolume = "configuration", containerPath = local.directories.configuration, readOnly = false }])
      logConfiguration = local.logs[name]
    }
  }
  mounts = {
    for name, service in local.services : name =>
    [for path, volume in service.writable : { sourceVolume = volume, containerPath = path, readOnly = false }]
  }
  logs = {
    for name in keys(local.services) : name => {
      logDriver = "awslogs"
      options = {
        awslogs-group         = aws_cloudwatch_log_group.this[name].name
        awslogs-region        = var.region
        awslogs-stream-prefix = name
      }
    }
  }
  # Images of Prometheus and Grafana have busybox' wget, ours has Python
  ours = { for name, service in local.services : name => service.user != null }
  # Of those whose image build_images.sh has pushed
  repositories = merge(
    { for name, ours in local.ours : name => aws_ecr_repository.sparkmirror.arn if ours },
    { for name in ["prometheus"] : name => aws_ecr_repository.prometheus.arn if var.prometheus-image == null },
  )
  containers = {
    for name, service in local.services : name => {
      name                   = name
      image                  = service.image
      essential              = true
      user                   = service.user
      readonlyRootFilesystem = true
      command                = service.command
      stopTimeout            = name == "worker" ? 120 : 60 # a worker is drained; 120 is Fargate's most
      portMappings           = [{ containerPort = service.port, protocol = "tcp" }]
      environment            = [for key, value in service.environment : { name = key, value = value }]
      secrets                = service.secrets
      mountPoints = concat(
        local.mounts[name],
        [for _ in compact([service.part]) : { sourceVolume = "configuration", containerPath = local.directories.configuration, readOnly = true }],
        name == "master" ? [{ sourceVolume = "recovery", containerPath = local.directories.state, readOnly = false }] : [],
      )
      dependsOn = [{ containerName = "prepare", condition = "SUCCESS" }]
      healthCheck = {
        command = (local.ours[name] ?
          ["CMD", "python3", "-c", "from urllib.request import urlopen; urlopen('${service.probe}', timeout=5)"] :
        ["CMD", "wget", "-q", "-T", "5", "-O", "/dev/null", service.probe])
        interval    = 15
        timeout     = 10
        retries     = 4
        startPeriod = 120
      }
      linuxParameters  = { initProcessEnabled = true }
      logConfiguration = local.logs[name]
    }
  }
}

resource "aws_ecr_repository" "sparkmirror" {
  name                 = "sparkmirror"
  image_tag_mutability = "IMMUTABLE"
  image_scanning_configuration { scan_on_push = true }
  encryption_configuration { encryption_type = "AES256" }
}

resource "aws_ecr_repository" "prometheus" {
  name                 = "sparkmirror-prometheus"
  image_tag_mutability = "IMMUTABLE"
  image_scanning_configuration { scan_on_push = true }
  encryption_configuration { encryption_type = "AES256" }
}

resource "aws_cloudwatch_log_group" "this" {
  for_each = local.services

  name              = "/ecs/${var.app-shorthand-name}/${each.key}"
  retention_in_days = var.log-retention-days
}

resource "aws_ecs_cluster" "this" {
  name = var.app-shorthand-name
  setting {
    name  = "containerInsights"
    value = "enabled"
  }
}

resource "aws_ecs_task_definition" "this" {
  for_each = local.services

  family                   = "${var.app-shorthand-name}-${each.key}"
  requires_compatibilities = ["FARGATE"]
  network_mode             = "awsvpc"
  cpu                      = each.value.cpu
  memory                   = each.value.memory
  execution_role_arn       = aws_iam_role.execution[each.key].arn
  task_role_arn            = aws_iam_role.task[each.key].arn
  container_definitions    = jsonencode([local.prepare[each.key], { for key, value in local.containers[each.key] : key => value if value != null }])
  runtime_platform {
    operating_system_family = "LINUX"
    cpu_architecture        = "X86_64"
  }
  dynamic "ephemeral_storage" {
    for_each = each.value.disk_gib == null ? [] : [each.value.disk_gib]
    content { size_in_gib = ephemeral_storage.value }
  }
  dynamic "volume" {
    for_each = toset(concat(values(each.value.writable), each.value.part == null ? [] : ["configuration"]))
    content { name = volume.value }
  }
  dynamic "volume" {
    for_each = each.key == "master" ? ["recovery"] : []
    content {
      name = volume.value
      efs_volume_configuration {
        file_system_id     = aws_efs_file_system.master[0].id
        transit_encryption = "ENABLED"
        authorization_config {
          access_point_id = aws_efs_access_point.master[0].id
          iam             = "ENABLED"
        }
      }
    }
  }
}

resource "aws_ecs_service" "this" {
  for_each = local.services

  name                               = each.key
  cluster                            = aws_ecs_cluster.this.id
  task_definition                    = aws_ecs_task_definition.this[each.key].arn
  launch_type                        = "FARGATE"
  desired_count                      = each.value.count
  deployment_minimum_healthy_percent = each.value.least
  deployment_maximum_percent         = each.value.most
  availability_zone_rebalancing      = each.value.most > 100 ? "ENABLED" : "DISABLED"
  propagate_tags                     = "SERVICE"
  deployment_circuit_breaker {
    enable   = true
    rollback = true
  }
  network_configuration {
    subnets          = local.subnet_ids
    security_groups  = concat([aws_security_group.service[each.key].id], contains(["driver", "worker"], each.key) ? [aws_security_group.tasks.id] : [])
    assign_public_ip = false
  }
  service_registries { registry_arn = aws_service_discovery_service.this[each.key].arn }
  # How many workers there are is autoscaling's
  lifecycle { ignore_changes = [desired_count] }
  depends_on = [aws_s3_object.configuration, aws_iam_role_policy.execution, aws_iam_role_policy.task, aws_efs_mount_target.master]
}

# CPU of all workers together: more of them while it is above 70 %, fewer while it is below
resource "aws_appautoscaling_target" "worker" {
  count = local.spark_cluster ? 1 : 0

  service_namespace  = "ecs"
  scalable_dimension = "ecs:service:DesiredCount"
  resource_id        = "service/${aws_ecs_cluster.this.name}/${aws_ecs_service.this["worker"].name}"
  min_capacity       = 1
  max_capacity       = var.worker-max
}

resource "aws_appautoscaling_policy" "worker" {
  count = local.spark_cluster ? 1 : 0

  name               = "cpu"
  policy_type        = "TargetTrackingScaling"
  service_namespace  = aws_appautoscaling_target.worker[0].service_namespace
  scalable_dimension = aws_appautoscaling_target.worker[0].scalable_dimension
  resource_id        = aws_appautoscaling_target.worker[0].resource_id
  target_tracking_scaling_policy_configuration {
    target_value       = 70
    scale_in_cooldown  = 300
    scale_out_cooldown = 60
    predefined_metric_specification { predefined_metric_type = "ECSServiceAverageCPUUtilization" }
  }
}

# What the master must know when it is replaced: the application and its workers, some kilobytes
resource "aws_efs_file_system" "master" {
  count = local.spark_cluster ? 1 : 0

  creation_token = "${var.app-shorthand-name}-master"
  encrypted      = true
}

resource "aws_efs_access_point" "master" {
  count = local.spark_cluster ? 1 : 0

  file_system_id = aws_efs_file_system.master[0].id
  posix_user {
    uid = 10001
    gid = 10001
  }
  root_directory {
    path = "/recovery"
    creation_info {
      owner_uid   = 10001
      owner_gid   = 10001
      permissions = "0700"
    }
  }
}

resource "aws_efs_mount_target" "master" {
  count = local.spark_cluster ? length(local.subnet_ids) : 0

  file_system_id  = aws_efs_file_system.master[0].id
  subnet_id       = local.subnet_ids[count.index]
  security_groups = [aws_security_group.recovery[0].id]
}
