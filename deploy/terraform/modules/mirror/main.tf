# Drivers, and unless worker_max is 0 a Spark standalone cluster for them.

locals {
  slots        = max(1, floor(var.cpu / 1024))
  worker_mib   = var.memory - 1024 # the rest is for the worker's own JVM and the pumps' Python
  executor_mib = min(1024, local.worker_mib)
  master_url   = "spark://master.${module.place.place.namespace}:${local.ports.spark}"
  directories  = { configuration = "/etc/sparkmirror", state = "/var/lib/sparkmirror" }
  # Spark's own variable: on a command line each process of the task could read it
  spark_secret  = local.spark_cluster ? { _SPARK_AUTH_SECRET = var.spark_secret_arn } : {}
  authenticated = "-Dspark.authenticate=true -Dspark.network.crypto.enabled=true"
  writable      = { "/tmp" = "tmp", (local.directories.state) = "state" }
  spark_cluster = var.worker_max > 0
  # Lines with the flows' figures, of which the metric below is made
  lines = local.spark_cluster ? ["--output", "json"] : []
  size  = { cpu = var.cpu, memory = var.memory, architecture = var.cpu_architecture }

  services = merge(
    {
      driver = {
        container = {
          command     = concat(["run", local.directories.configuration, "--metrics-port", tostring(local.ports.metrics), "--metrics-profile", "aws"], local.lines)
          port        = local.ports.metrics
          probe       = "http://127.0.0.1:${local.ports.metrics}/health"
          environment = {}
          secrets     = merge(var.secrets, local.spark_secret)
          writable    = local.writable
          part        = "connector"
        }
        size   = local.size
        tasks  = { count = 2, least = 50, most = 200 } # one works, the other stands by: the lease at the target says which
        rights = local.kafka
      }
    },
    { for name, service in {
      # One at a time: two would write the same recovery files
      master = {
        container = {
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
        }
        size   = { cpu = 256, memory = 1024, architecture = var.cpu_architecture }
        tasks  = { count = 1, least = 0, most = 100 }
        rights = local.recovery_rights
      }
      worker = {
        container = {
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
          secrets  = merge(var.secrets, local.spark_secret)
          writable = local.writable
          part     = null
        }
        size   = local.size
        tasks  = { count = 1, least = 100, most = 200 }
        rights = local.kafka
      }
    } : name => service if local.spark_cluster },
  )
}

module "place" {
  source = "../place"

  name   = var.name
  vpc_id = var.vpc_id
}

module "service" {
  source   = "../service"
  for_each = local.services

  name               = each.key
  prefix             = var.name
  place              = module.place.place
  vpc_id             = var.vpc_id
  subnet_ids         = local.subnet_ids
  security_group_ids = contains(["driver", "worker"], each.key) ? [aws_security_group.tasks.id] : []
  container          = merge(each.value.container, { image = var.image, user = "10001", digest = local.digest })
  size               = each.value.size
  tasks              = each.value.tasks
  spot               = var.worker_spot && each.key == "worker"
  shared = each.key != "master" ? null : {
    file_system_id  = aws_efs_file_system.master[0].id
    access_point_id = aws_efs_access_point.master[0].id
    path            = local.directories.state
  }
  statements         = each.value.rights
  log_retention_days = var.log_retention_days
  aws_cli_image      = var.aws_cli_image
  depends_on         = [aws_s3_object.configuration, aws_efs_mount_target.master]
}

# CPU of all workers together: more of them while it is above 70 %, fewer while it is below
resource "aws_appautoscaling_target" "worker" {
  count = local.spark_cluster ? 1 : 0

  service_namespace  = "ecs"
  scalable_dimension = "ecs:service:DesiredCount"
  resource_id        = "service/${module.place.place.cluster}/${module.service["worker"].service}"
  min_capacity       = 1
  max_capacity       = var.worker_max
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

# The time until all is copied, of the drivers' lines: a driver that stands by has none, nor has one that copies nothing of a backlog. What is parked doesn't count, as no worker makes it faster
resource "aws_cloudwatch_log_metric_filter" "catch_up" {
  for_each = !local.spark_cluster ? {} : {
    behind    = { pattern = "{ $.eta_s >= 0 }", value = "$.eta_s" }
    caught-up = { pattern = "{ ($.eta_s IS NULL) && (($.lag = 0) || ($.state = \"caught up\") || ($.state = \"held up\")) }", value = "0" }
  }

  name           = "${var.name}-${each.key}"
  log_group_name = module.service["driver"].log_group
  pattern        = each.value.pattern
  metric_transformation {
    namespace = "sparkmirror"
    name      = "${var.name}-catch-up"
    value     = each.value.value
    unit      = "Seconds"
  }
}

# More workers while it would take more than a minute; fewer only if the CPU agrees
resource "aws_appautoscaling_policy" "lag" {
  count = local.spark_cluster ? 1 : 0

  name               = "lag"
  policy_type        = "TargetTrackingScaling"
  service_namespace  = aws_appautoscaling_target.worker[0].service_namespace
  scalable_dimension = aws_appautoscaling_target.worker[0].scalable_dimension
  resource_id        = aws_appautoscaling_target.worker[0].resource_id
  target_tracking_scaling_policy_configuration {
    target_value       = 60
    scale_in_cooldown  = 300
    scale_out_cooldown = 120
    customized_metric_specification {
      namespace   = aws_cloudwatch_log_metric_filter.catch_up["behind"].metric_transformation[0].namespace
      metric_name = aws_cloudwatch_log_metric_filter.catch_up["behind"].metric_transformation[0].name
      statistic   = "Maximum"
      unit        = "Seconds"
    }
  }
}

# What the master must know when it is replaced: the application and its workers, some kilobytes
resource "aws_efs_file_system" "master" {
  count = local.spark_cluster ? 1 : 0

  creation_token = "${var.name}-master"
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
