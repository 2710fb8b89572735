mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "012345678910" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_region" {
    defaults = { region = "us-west-1" }
  }
  mock_data "aws_subnets" {
    defaults = { ids = ["subnet-a", "subnet-b", "subnet-c"] }
  }
}

variables {
  name             = "watch"
  vpc_id           = "vpc-0123456789abcdef0"
  subnet_ids       = ["subnet-a", "subnet-b"]
  mirrors          = { orders = { host = "driver.orders.us-west-1.local", port = 9404, security_group_id = "sg-orders" } }
  prometheus_image = "prom/prometheus:v3.5.0"
}

run "prometheus_alone" {
  command = plan
  assert {
    condition     = keys(output.urls) == ["prometheus"] && keys(aws_vpc_security_group_ingress_rule.services) == ["metrics-orders"]
    error_message = "There is more than Prometheus and its way to the drivers."
  }
  assert {
    condition     = !strcontains(aws_s3_object.configuration["prometheus/prometheus.yml"].content, "alerting")
    error_message = "Alerts go somewhere."
  }
}

run "alerts_to_sns" {
  command = plan
  variables {
    alerts_topic = { arn = "arn:aws:sns:us-west-1:012345678910:alerts" }
    grafana      = { password_secret_arn = "arn:aws:secretsmanager:us-west-1:012345678910:secret:grafana-AbCdEf" }
  }
  assert {
    condition     = keys(output.urls) == ["alertmanager", "grafana", "prometheus"]
    error_message = "A service is missing."
  }
  assert {
    condition     = strcontains(aws_s3_object.configuration["prometheus/prometheus.yml"].content, "targets: [alertmanager.watch.us-west-1.local:9093]")
    error_message = "Prometheus does not know Alertmanager."
  }
  assert {
    condition     = yamldecode(aws_s3_object.configuration["alertmanager/alertmanager.yml"].content).receivers[0].sns_configs[0].topic_arn == "arn:aws:sns:us-west-1:012345678910:alerts"
    error_message = "Alertmanager does not know the topic."
  }
}

run "alerts_to_our_alertmanagers" {
  command = plan
  variables { alertmanager_targets = ["alerts.example.com:9093"] }
  assert {
    condition     = strcontains(aws_s3_object.configuration["prometheus/prometheus.yml"].content, "targets: [alerts.example.com:9093]") && keys(output.urls) == ["prometheus"]
    error_message = "Alerts go elsewhere."
  }
}

run "managed_prometheus" {
  command = plan
  variables {
    managed_prometheus = { arn = "arn:aws:aps:us-west-1:012345678910:workspace/ws-1", endpoint = "https://aps.example.com/workspaces/ws-1/", workspace_id = "ws-1" }
    alerts_topic       = { arn = "arn:aws:sns:us-west-1:012345678910:alerts" }
  }
  assert {
    condition     = keys(output.urls) == ["prometheus"] && length(aws_prometheus_rule_group_namespace.this) == 2 && length(aws_prometheus_alert_manager_definition.this) == 1
    error_message = "Rules and alerts are not the workspace's."
  }
  assert {
    condition     = yamldecode(aws_s3_object.configuration["prometheus/prometheus.yml"].content).remote_write[0].url == "https://aps.example.com/workspaces/ws-1/api/v1/remote_write"
    error_message = "Prometheus sends elsewhere."
  }
}

run "managed_prometheus_with_a_grafana" {
  command = plan
  variables {
    managed_prometheus = { arn = "arn:aws:aps:us-west-1:012345678910:workspace/ws-1", endpoint = "https://aps.example.com/workspaces/ws-1/", workspace_id = "ws-1" }
    grafana            = { password_secret_arn = "arn:aws:secretsmanager:us-west-1:012345678910:secret:grafana-AbCdEf" }
  }
  expect_failures = [var.grafana]
}

run "managed_prometheus_with_alertmanagers" {
  command = plan
  variables {
    managed_prometheus   = { arn = "arn:aws:aps:us-west-1:012345678910:workspace/ws-1", endpoint = "https://aps.example.com/workspaces/ws-1/", workspace_id = "ws-1" }
    alertmanager_targets = ["alerts.example.com:9093"]
  }
  expect_failures = [var.alertmanager_targets]
}
