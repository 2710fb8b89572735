# Prometheus; Grafana, if wanted; and an Alertmanager where alerts go to SNS. Each in a security group of its own.

locals {
  place     = one(concat(module.place[*].place, var.place == null ? [] : [var.place]))
  directory = "/etc/sparkmirror"
  ports     = { prometheus = 9090, grafana = 3000, alertmanager = 9093 }
  managed   = var.managed_prometheus != null
  # Alertmanager is ours where Prometheus' alerts go to SNS, which it can't send to by itself
  topics = [for topic in [var.alerts_topic] : topic.arn if topic != null]
  names  = concat(["prometheus"], var.grafana == null ? [] : ["grafana"], length(local.topics) > 0 && !local.managed ? ["alertmanager"] : [])
  alertmanagers = concat(
    var.alertmanager_targets, [for name in local.names : "${name}.${local.place.namespace}:${local.ports[name]}" if name == "alertmanager"]
  )

  services = { for name, service in {
    prometheus = {
      container = {
        image       = var.prometheus_image
        command     = concat(["--config.file=${local.directory}/prometheus.yml"], local.managed ? ["--agent", "--storage.agent.path=/prometheus"] : ["--storage.tsdb.path=/prometheus"])
        probe       = "http://127.0.0.1:${local.ports.prometheus}/-/healthy"
        environment = {}
        secrets     = {}
        writable    = { "/prometheus" = "state" }
      }
      size = local.managed ? { cpu = 512, memory = 1024, disk_gib = null } : { cpu = 2048, memory = 4096, disk_gib = 100 }
      rights = [for workspace in local.workspaces : {
        Sid      = "Send"
        Action   = ["aps:RemoteWrite"]
        Resource = [workspace.arn]
      }]
    }
    grafana = {
      container = {
        image   = try(var.grafana.image, "")
        command = []
        probe   = "http://127.0.0.1:${local.ports.grafana}/api/health"
        environment = {
          GF_PATHS_PROVISIONING = "${local.directory}/provisioning"
          GF_LOG_MODE           = "console"
        }
        secrets  = { GF_SECURITY_ADMIN_PASSWORD = try(var.grafana.password_secret_arn, "") }
        writable = { "/tmp" = "tmp", "/var/lib/grafana" = "state" }
      }
      size   = { cpu = 1024, memory = 3072, disk_gib = null }
      rights = []
    }
    alertmanager = {
      container = {
        image       = try(var.alerts_topic.alertmanager_image, "")
        command     = ["--config.file=${local.directory}/alertmanager.yml", "--storage.path=/alertmanager", "--cluster.listen-address="]
        probe       = "http://127.0.0.1:${local.ports.alertmanager}/-/healthy"
        environment = {}
        secrets     = {}
        writable    = { "/alertmanager" = "state" }
      }
      size = { cpu = 256, memory = 512, disk_gib = null }
      rights = [for topic in local.topics : {
        Sid      = "Publish"
        Action   = ["sns:Publish"]
        Resource = [topic]
      }]
    }
  } : name => service if contains(local.names, name) }
  workspaces = [for workspace in [var.managed_prometheus] : workspace if local.managed]
}

module "place" {
  source = "../place"
  count  = var.place == null ? 1 : 0

  name   = var.name
  vpc_id = var.vpc_id
}

module "service" {
  source   = "../service"
  for_each = local.services

  name       = each.key
  prefix     = var.name
  place      = local.place
  vpc_id     = var.vpc_id
  subnet_ids = var.subnet_ids
  container = merge(each.value.container, {
    port = local.ports[each.key], part = each.key, digest = local.digests[each.key]
  })
  size               = merge(each.value.size, { architecture = var.cpu_architecture })
  statements         = each.value.rights
  log_retention_days = var.log_retention_days
  aws_cli_image      = var.aws_cli_image
  depends_on         = [aws_s3_object.configuration]
}
