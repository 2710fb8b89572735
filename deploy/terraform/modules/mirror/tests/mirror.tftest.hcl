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
  name             = "orders"
  vpc_id           = "vpc-0123456789abcdef0"
  image            = "012345678910.dkr.ecr.us-west-1.example.com/sparkmirror:1"
  spark_secret_arn = "arn:aws:secretsmanager:us-west-1:012345678910:secret:spark-AbCdEf"
  source_cluster = {
    bootstrap_servers = "b-1.old.example.com:9098"
    arn               = "arn:aws:kafka:us-west-1:012345678910:cluster/old/0123-1"
  }
  target_cluster = {
    bootstrap_servers = "b-1.new.example.com:9098"
    arn               = "arn:aws:kafka:us-west-1:012345678910:cluster/new/4567-2"
  }
}

run "usual" {
  command = plan
  assert {
    condition     = output.spark_master == "spark://master.orders.us-west-1.local:7077"
    error_message = "Spark's master has another address."
  }
  assert {
    condition     = toset(keys(output.log_groups)) == toset(["driver", "master", "worker"])
    error_message = "There are other services."
  }
  assert {
    condition     = length(aws_vpc_security_group_ingress_rule.brokers) == 0 && length(aws_iam_role_policy.bastion) == 0
    error_message = "Something is opened that nobody asked for."
  }
}

run "without_workers" {
  command = plan
  variables {
    worker_max       = 0
    spark_secret_arn = null
  }
  assert {
    condition     = output.spark_master == null && length(aws_efs_file_system.master) == 0
    error_message = "A Spark cluster is left."
  }
}

run "bastion_and_brokers" {
  command = plan
  variables {
    bastion                   = { security_group_id = "sg-b", role_name = "bastion" }
    broker_security_group_ids = { target = "sg-t" }
  }
  assert {
    condition     = toset(keys(aws_vpc_security_group_ingress_rule.brokers)) == toset(["target-bastion", "target-tasks"])
    error_message = "The target's brokers let in others than tasks and bastion."
  }
  assert {
    condition     = aws_vpc_security_group_ingress_rule.brokers["target-tasks"].from_port == 9098
    error_message = "The port is not the brokers'."
  }
}

run "no_such_memory" {
  command = plan
  variables { memory = 1500 }
  expect_failures = [var.memory]
}

run "too_little_memory_for_a_worker" {
  command = plan
  variables {
    cpu    = 256
    memory = 1024
  }
  expect_failures = [var.memory]
}

run "no_such_cpu" {
  command = plan
  variables { cpu = 300 }
  expect_failures = [var.cpu]
}

run "more_tasks_than_slots" {
  command = plan
  variables {
    tasks_max  = 20
    worker_max = 3
  }
  expect_failures = [var.tasks_max]
}

run "more_tasks_than_a_driver_holds" {
  command = plan
  variables {
    tasks_max  = 20
    worker_max = 0
  }
  expect_failures = [var.tasks_max]
}

run "as_many_tasks_as_slots" {
  command = plan
  variables {
    cpu        = 2048
    tasks_max  = 6
    worker_max = 3
  }
}

run "spark_without_a_secret" {
  command = plan
  variables { spark_secret_arn = null }
  expect_failures = [var.spark_secret_arn]
}

run "sign_in_by_iam_without_an_arn" {
  command = plan
  variables {
    target_cluster = { bootstrap_servers = "b-1.new.example.com:9098" }
  }
  expect_failures = [aws_s3_object.configuration]
}

run "no_sign_in_without_an_arn" {
  command = plan
  variables {
    connector_directory = "../../../../examples/connectors/no-auth"
    source_cluster      = { bootstrap_servers = "old.example.com:9092" }
    target_cluster      = { bootstrap_servers = "new.example.com:9092" }
  }
}

run "one_group_for_both_sides" {
  command = plan
  variables {
    broker_security_group_ids = { source = "sg-a", target = "sg-a" }
  }
  expect_failures = [var.broker_security_group_ids]
}
