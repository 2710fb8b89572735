variable "prefix" {
  description = "Beginning of the repositories' names, such as `team/`; with none they are where build_images.sh pushes to."
  type        = string
  default     = ""
}

variable "force_delete" {
  description = "Whether `terraform destroy` deletes the repositories with their images; otherwise AWS refuses while there are images."
  type        = bool
  default     = false
}
