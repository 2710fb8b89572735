terraform {
  required_version = ">= 1.9"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.0, < 7.0"
    }
  }
}

provider "aws" {
  region = var.region
  default_tags { tags = merge({ Application = var.app-shorthand-name }, var.tags) }
}

data "aws_caller_identity" "current" {}

check "account" {
  assert {
    condition     = data.aws_caller_identity.current.account_id == var.account-id
    error_message = "The credentials are of account ${data.aws_caller_identity.current.account_id}, not of account-id ${var.account-id}."
  }
}
