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

run "images_are_kept" {
  command = plan
  assert {
    condition     = alltrue([for repository in aws_ecr_repository.this : repository.force_delete == false])
    error_message = "Images are deleted with their repositories."
  }
}

run "of_a_team" {
  command = plan
  variables {
    prefix       = "team/"
    force_delete = true
  }
  assert {
    condition     = toset([for repository in aws_ecr_repository.this : repository.name]) == toset(["team/sparkmirror", "team/sparkmirror-prometheus"])
    error_message = "The names are others."
  }
}
