# Connectors' files, Prometheus' and Grafana's: in one bucket, from which each task fetches its own before it starts.

locals {
  brokers = {
    source = coalesce(var.source-cluster-bootstrap-broker-string, try(aws_msk_cluster.this["source"].bootstrap_brokers_sasl_iam, null))
    target = coalesce(var.target-cluster-bootstrap-broker-string, try(aws_msk_cluster.this["target"].bootstrap_brokers_sasl_iam, null))
  }
  values = merge({
    SOURCE_ALIAS   = var.source-alias
    TARGET_ALIAS   = var.target-alias
    SOURCE_BROKERS = local.brokers.source
    TARGET_BROKERS = local.brokers.target
    TOPIC_PATTERN  = var.topics
    GROUP_PATTERN  = var.groups
    WORKER_GROUP   = "${var.app-shorthand-name}-worker"
  }, var.connector-values)

  # ${NAME} becomes its value; ${env:NAME} is another thing, and stays
  directory  = startswith(var.connector-directory, "/") ? var.connector-directory : "${path.module}/${var.connector-directory}"
  parts      = "\\$\\{[A-Z_]+\\}|[^$]+|\\$"
  fills      = { for name, value in local.values : "$${${name}}" => value }
  connectors = { for file, keys in local.unfilled : file => { for key, value in keys : key => join("", [for part in regexall(local.parts, value) : lookup(local.fills, part, part)]) } }
  unfilled   = { for name in fileset(local.directory, "*.json") : name => jsondecode(file("${local.directory}/${name}")) }
  workers    = { for name in fileset(local.directory, "*.properties") : name => join("", [for part in regexall(local.parts, file("${local.directory}/${name}")) : lookup(local.fills, part, part)]) }
  spark = var.worker-max == 0 ? [] : [
    "spark.master = spark://master.${local.namespace}:${local.ports.spark}",
    "spark.executor.memory = ${local.executor_mib}m",
    "spark.authenticate = true",
    "spark.network.crypto.enabled = true",
    "spark.driver.port = ${local.ports.driver}",
    "spark.driver.blockManager.port = ${local.ports.driver_blocks}",
    "spark.blockManager.port = ${local.ports.executor_blocks}",
  ]

  configuration = merge(
    {
      for name, keys in local.connectors : "connector/${name}" => jsonencode(merge(
        keys, endswith(keys["connector.class"], "MirrorSourceConnector") ? { "tasks.max" = tostring(var.tasks-max) } : {}
      ))
    },
    { for name, text in local.workers : "connector/${name}" => join("\n", concat([text, "# The Spark cluster of this deployment"], local.spark, [""])) },
    { for name in ["alerts.yml", "recording.yml"] : "prometheus/${name}" => file("${path.module}/../prometheus/${name}") },
    {
      "prometheus/prometheus.yml" = templatefile("${path.module}/prometheus.yml.tftpl", {
        driver  = "driver.${local.namespace}"
        port    = local.ports.metrics
        brokers = { for cluster in keys(local.msk) : cluster => [for broker in split(",", local.brokers[cluster]) : split(":", broker)[0]] }
      })
    },
    { for name in ["sparkmirror.json", "aws.json"] : "grafana/dashboards/${name}" => file("${path.module}/../grafana/dashboards/${name}") },
    {
      "grafana/provisioning/datasources/prometheus.yml" = replace(
        file("${path.module}/../grafana/provisioning/datasources/prometheus.yml"), "http://prometheus:9090", local.urls.prometheus
      )
      "grafana/provisioning/dashboards/sparkmirror.yml" = replace(
        file("${path.module}/../grafana/provisioning/dashboards/sparkmirror.yml"),
        "/var/lib/grafana/dashboards/sparkmirror", "${local.directories.configuration}/dashboards"
      )
    },
  )
  # A new task definition, and so a rolling deployment, wherever a file has changed
  digests = {
    for part in ["connector", "prometheus", "grafana"] :
    part => sha256(join("\n", [for name in sort(keys(local.configuration)) : local.configuration[name] if startswith(name, "${part}/")]))
  }
}

resource "aws_s3_bucket" "configuration" {
  bucket        = "${var.app-shorthand-name}-configuration-${var.account-id}-${var.region}"
  force_destroy = true
}

resource "aws_s3_bucket_versioning" "configuration" {
  bucket = aws_s3_bucket.configuration.id
  versioning_configuration { status = "Enabled" }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "configuration" {
  bucket = aws_s3_bucket.configuration.id
  rule {
    apply_server_side_encryption_by_default { sse_algorithm = "AES256" }
  }
}

resource "aws_s3_bucket_public_access_block" "configuration" {
  bucket                  = aws_s3_bucket.configuration.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_policy" "configuration" {
  bucket = aws_s3_bucket.configuration.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "TlsOnly"
      Effect    = "Deny"
      Principal = "*"
      Action    = "s3:*"
      Resource  = [aws_s3_bucket.configuration.arn, "${aws_s3_bucket.configuration.arn}/*"]
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
    }]
  })
  depends_on = [aws_s3_bucket_public_access_block.configuration]
}

resource "aws_s3_object" "configuration" {
  for_each = toset(keys(local.configuration))

  bucket  = aws_s3_bucket.configuration.id
  key     = each.key
  content = local.configuration[each.key]
  lifecycle {
    precondition {
      condition     = !startswith(each.key, "connector/") || length(regexall("\\$\\{[A-Z_]+\\}", local.configuration[each.key])) == 0
      error_message = "${each.key} has placeholders without a value: set connector-values."
    }
    precondition {
      condition     = length(local.workers) == 1 && length(local.connectors) > 0
      error_message = "${local.directory} must hold connectors' JSON files and one worker's file, *.properties."
    }
  }
}
