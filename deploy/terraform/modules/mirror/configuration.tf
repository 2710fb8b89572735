# Connectors' files, in the bucket from which the drivers fetch them before they start.

locals {
  sides   = ["source", "target"]
  cluster = { source = var.source_cluster, target = var.target_cluster }
  values = merge({
    SOURCE_ALIAS   = var.source_cluster.alias
    TARGET_ALIAS   = var.target_cluster.alias
    SOURCE_BROKERS = var.source_cluster.bootstrap_servers
    TARGET_BROKERS = var.target_cluster.bootstrap_servers
    TOPIC_PATTERN  = var.topics
    GROUP_PATTERN  = var.groups
    WORKER_GROUP   = "${var.name}-worker"
  }, var.connector_values)

  # ${NAME} becomes its value; ${env:NAME} is another thing, and stays
  directory  = coalesce(var.connector_directory, "${path.module}/../../../../examples/connectors/iam")
  parts      = "\\$\\{[A-Z_]+\\}|[^$]+|\\$"
  fills      = { for name, value in local.values : "$${${name}}" => value }
  unfilled   = { for name in fileset(local.directory, "*.json") : name => jsondecode(file("${local.directory}/${name}")) }
  properties = { for name in fileset(local.directory, "*.properties") : name => file("${local.directory}/${name}") }
  connectors = { for file, keys in local.unfilled : file => { for key, value in keys : key => join("", [for part in regexall(local.parts, value) : lookup(local.fills, part, part)]) } }
  workers    = { for name, text in local.properties : name => join("", [for part in regexall(local.parts, text) : lookup(local.fills, part, part)]) }
  spark = !local.spark_cluster ? [] : [
    "spark.master = ${local.master_url}",
    "spark.executor.memory = ${local.executor_mib}m",
    "spark.authenticate = true",
    "spark.network.crypto.enabled = true",
    "spark.driver.port = ${local.ports.driver}",
    "spark.driver.blockManager.port = ${local.ports.driver_blocks}",
    "spark.blockManager.port = ${local.ports.executor_blocks}",
  ]

  # Sides that are signed in to by IAM, as the files say: the tasks need rights there
  told = {
    source = [for key, value in merge(values(local.unfilled)...) : value if startswith(key, "source.")]
    target = concat([for key, value in merge(values(local.unfilled)...) : value if !startswith(key, "source.")], values(local.properties))
  }
  by_iam = [for side in local.sides : side if anytrue([for text in local.told[side] : can(regex("AWS_MSK_IAM|amazon\\.msk", text))])]
  # Rights would be missing, and the drivers could not sign in
  without_arn = [for side in local.by_iam : side if !can(regex("^arn:[a-z-]+:kafka:[^:]+:[0-9]+:cluster/", coalesce(local.cluster[side].arn, "-")))]

  configuration = merge(
    {
      for name, keys in local.connectors : "connector/${name}" => jsonencode(merge(
        keys, endswith(keys["connector.class"], "MirrorSourceConnector") ? { "tasks.max" = tostring(var.tasks_max) } : {}
      ))
    },
    { for name, text in local.workers : "connector/${name}" => join("\n", concat([text, "# The Spark cluster of this deployment"], local.spark, [""])) },
  )
  digest = sha256(join("\n", [for name in sort(keys(local.configuration)) : local.configuration[name]]))
}

resource "aws_s3_object" "configuration" {
  for_each = toset(keys(local.configuration))

  bucket  = module.place.place.bucket
  key     = each.key
  content = local.configuration[each.key]
  lifecycle {
    precondition {
      condition     = length(regexall("\\$\\{[A-Z_]+\\}", local.configuration[each.key])) == 0
      error_message = "${each.key} has placeholders without a value: set connector_values."
    }
    precondition {
      condition     = length(local.workers) == 1 && length(local.connectors) > 0
      error_message = "${local.directory} must hold connectors' JSON files and one worker's file, *.properties."
    }
    precondition {
      condition     = length(local.without_arn) == 0
      error_message = "By the files of ${local.directory} the mirror signs in by IAM at: ${join(", ", local.by_iam)}. Its rights are made of the ARNs of MSK clusters, which are missing for: ${join(", ", local.without_arn)}. Set arn in source_cluster or target_cluster, or choose another connector_directory."
    }
  }
}
