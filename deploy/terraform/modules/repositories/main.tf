# The images' repositories in ECR: once in an account and region, for all mirrors there.

resource "aws_ecr_repository" "this" {
  for_each = toset(["sparkmirror", "sparkmirror-prometheus"])

  name                 = "${var.prefix}${each.key}"
  force_delete         = var.force_delete
  image_tag_mutability = "IMMUTABLE"
  image_scanning_configuration { scan_on_push = true }
  encryption_configuration { encryption_type = "AES256" }
}
