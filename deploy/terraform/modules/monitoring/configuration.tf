# Files of Prometheus, Grafana and Alertmanager, in the bucket from which their tasks fetch them before they start.

locals {
  urls       = { for name in local.names : name => "http://${name}.${local.place.namespace}:${local.ports[name]}" }
  deploy     = "${path.module}/../../.."
  rules      = { for name in ["alerts", "recording"] : name => file("${local.deploy}/prometheus/${name}.yml") }
  rule_files = local.managed ? [] : [for name in keys(local.rules) : "${name}.yml"]

  # As Alertmanager has it, ours and the workspace's
  alertmanager = yamlencode({
    route = { receiver = "sns", group_by = ["alertname", "flow"] }
    receivers = [{
      name        = "sns"
      sns_configs = [for topic in local.topics : { topic_arn = topic, sigv4 = { region = local.place.region }, send_resolved = true }]
    }]
  })

  configuration = merge(
    { for name, text in local.rules : "prometheus/${name}.yml" => text if !local.managed },
    {
      "prometheus/prometheus.yml" = templatefile("${path.module}/prometheus.yml.tftpl", {
        mirrors       = var.mirrors
        brokers       = { for name, cluster in var.msk_clusters : name => [for broker in split(",", cluster.bootstrap_servers) : split(":", broker)[0]] }
        rule_files    = local.rule_files
        alertmanagers = local.managed ? [] : local.alertmanagers
        workspaces    = local.workspaces
        region        = local.place.region
      })
    },
    { for path, text in {
      "grafana/dashboards/sparkmirror.json" = file("${local.deploy}/grafana/dashboards/sparkmirror.json")
      "grafana/dashboards/aws.json"         = file("${local.deploy}/grafana/dashboards/aws.json")
      "grafana/provisioning/datasources/prometheus.yml" = replace(
        file("${local.deploy}/grafana/provisioning/datasources/prometheus.yml"), "http://prometheus:9090", local.urls.prometheus
      )
      "grafana/provisioning/dashboards/sparkmirror.yml" = replace(
        file("${local.deploy}/grafana/provisioning/dashboards/sparkmirror.yml"),
        "/var/lib/grafana/dashboards/sparkmirror", "${local.directory}/dashboards"
      )
      "alertmanager/alertmanager.yml" = local.alertmanager
    } : path => text if contains(local.names, split("/", path)[0]) },
  )
  digests = {
    for part in local.names :
    part => sha256(join("\n", [for name in sort(keys(local.configuration)) : local.configuration[name] if startswith(name, "${part}/")]))
  }
}

resource "aws_s3_object" "configuration" {
  for_each = toset(keys(local.configuration))

  bucket  = local.place.bucket
  key     = each.key
  content = local.configuration[each.key]
}

# Rules and alerts of a managed workspace

resource "aws_prometheus_rule_group_namespace" "this" {
  for_each = { for name, text in local.rules : name => text if local.managed }

  name         = "${var.name}-${each.key}"
  workspace_id = var.managed_prometheus.workspace_id
  data         = each.value
}

resource "aws_prometheus_alert_manager_definition" "this" {
  count = local.managed && length(local.topics) > 0 ? 1 : 0

  workspace_id = var.managed_prometheus.workspace_id
  definition   = yamlencode({ alertmanager_config = local.alertmanager })
}
