# terraform plan -var-file main.tfvars
region             = "us-west-1"
account-id         = "012345678910"
app-shorthand-name = "migrationsample"
vpc-id             = "vpc-0123456789abcdef0"

# The clusters that there are; to make some: examples/with_msk/clusters
source-cluster-bootstrap-broker-string = "b-1.old.example.com:9098,b-2.old.example.com:9098"
source-cluster-arn                     = "arn:aws:kafka:us-west-1:012345678910:cluster/old/0123-1"
target-cluster-bootstrap-broker-string = "b-1.new.example.com:9098"
target-cluster-arn                     = "arn:aws:kafka:us-west-1:012345678910:cluster/new/4567-2"
broker-security-group-ids = {
  source = "sg-0123456789abcdef1"
  target = "sg-0123456789abcdef2"
}

# The outputs SecurityGroup and RoleName of the bastion's stack
bastion = { security_group_id = "sg-0123456789abcdef0", role_name = "lab-bastion-Role-AbCdEf" }

image-tag                   = "0.3.0"
grafana-password-secret-arn = "arn:aws:secretsmanager:us-west-1:012345678910:secret:migrationsample/grafana-AbCdEf"
spark-secret-arn            = "arn:aws:secretsmanager:us-west-1:012345678910:secret:migrationsample/spark-AbCdEf"

topics     = "ExampleTopic"
iam-topics = ["ExampleTopic"]
tags       = { Environment = "sample" }
