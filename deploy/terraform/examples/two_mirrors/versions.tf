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
  region              = var.region
  allowed_account_ids = [var.account_id]
}

variable "region" {
  description = "AWS region of all resources."
  type        = string
  default     = "us-west-1"
}

variable "account_id" {
  description = "The intended account; credentials of another account are refused."
  type        = string
}
