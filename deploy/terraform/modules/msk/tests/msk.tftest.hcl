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
  name       = "orders-target"
  vpc_id     = "vpc-0123456789abcdef0"
  subnet_ids = ["subnet-a", "subnet-b", "subnet-c"]
}

run "records_are_kept_as_kafka_keeps_them" {
  command = plan
  assert {
    condition     = !can(regex("retention|cleanup|segment", aws_msk_configuration.this.server_properties))
    error_message = "The cluster deletes records otherwise than Kafka's default."
  }
  assert {
    condition     = aws_msk_cluster.this.number_of_broker_nodes == 3 && strcontains(aws_msk_configuration.this.server_properties, "min.insync.replicas=2")
    error_message = "A broker in each subnet, one of which may fail."
  }
}

run "one_subnet" {
  command = plan
  variables { subnet_ids = ["subnet-a"] }
  expect_failures = [var.subnet_ids]
}
