# The kit's deployment, by the kit's variables, out of this directory's modules. To compose them otherwise: examples.

module "repositories" {
  source = "./modules/repositories"

  force_delete = var.ecr-force-delete
}

module "mirror" {
  source = "./modules/mirror"

  name       = var.app-shorthand-name
  vpc_id     = var.vpc-id
  subnet_ids = var.subnet-ids
  source_cluster = {
    alias             = var.source-alias
    bootstrap_servers = var.source-cluster-bootstrap-broker-string
    arn               = var.source-cluster-arn
  }
  target_cluster = {
    alias             = var.target-alias
    bootstrap_servers = var.target-cluster-bootstrap-broker-string
    arn               = var.target-cluster-arn
  }
  broker_security_group_ids = var.broker-security-group-ids
  topics                    = var.topics
  groups                    = var.groups
  iam_topics                = var.iam-topics
  iam_groups                = var.iam-groups
  tasks_max                 = var.tasks-max
  connector_directory       = startswith(var.connector-directory, "/") ? var.connector-directory : "${path.module}/${var.connector-directory}"
  connector_values          = var.connector-values
  secrets                   = var.secrets
  image                     = "${module.repositories.sparkmirror}:${var.image-tag}"
  cpu                       = var.cpu
  memory                    = var.memory
  cpu_architecture          = var.cpu-architecture
  worker_max                = var.worker-max
  worker_spot               = var.worker-spot
  spark_secret_arn          = var.spark-secret-arn
  bastion                   = var.bastion
  log_retention_days        = var.log-retention-days
  aws_cli_image             = var.aws-cli-image
}

module "monitoring" {
  source = "./modules/monitoring"
  count  = var.monitoring ? 1 : 0

  name       = var.app-shorthand-name
  vpc_id     = var.vpc-id
  subnet_ids = module.mirror.subnet_ids
  place      = module.mirror.place
  msk_clusters = { for side, group in var.broker-security-group-ids : side => {
    bootstrap_servers = side == "source" ? var.source-cluster-bootstrap-broker-string : var.target-cluster-bootstrap-broker-string
    security_group_id = group
  } if var.open-monitoring }
  mirrors              = { (var.app-shorthand-name) = module.mirror.monitored }
  prometheus_image     = coalesce(var.prometheus-image, "${module.repositories.prometheus}:${var.image-tag}")
  managed_prometheus   = var.managed-prometheus
  grafana              = var.managed-prometheus != null ? null : { password_secret_arn = var.grafana-password-secret-arn, image = var.grafana-image }
  alerts_topic         = var.alerts-topic-arn == null ? null : { arn = var.alerts-topic-arn, alertmanager_image = var.alertmanager-image }
  alertmanager_targets = var.alertmanager-targets
  bastion              = var.bastion
  cpu_architecture     = var.cpu-architecture
  log_retention_days   = var.log-retention-days
  aws_cli_image        = var.aws-cli-image
}

check "partition" {
  assert {
    condition     = var.partition == null || var.partition == module.mirror.place.partition
    error_message = "The credentials are of the partition ${module.mirror.place.partition}, not of ${coalesce(var.partition, "none")}."
  }
}
