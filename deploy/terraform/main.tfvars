# terraform plan -var-file main.tfvars
region             = "us-west-1"
account-id         = "012345678910"
app-shorthand-name = "migrationsample"
vpc-id             = "vpc-0123456789abcdef0"

# Without brokers MSK clusters are made. Those that are there already:
# source-cluster-bootstrap-broker-string = "b-1.old.example.com:9098,b-2.old.example.com:9098"
# source-cluster-arn                     = "arn:aws:kafka:us-west-1:012345678910:cluster/old/01234567-89ab-cdef-0123-456789abcdef-1"

image-tag                   = "0.2.0"
grafana-password-secret-arn = "arn:aws:secretsmanager:us-west-1:012345678910:secret:migrationsample/grafana-AbCdEf"
spark-secret-arn            = "arn:aws:secretsmanager:us-west-1:012345678910:secret:migrationsample/spark-AbCdEf"

topics     = "ExampleTopic"
iam-topics = ["ExampleTopic"]
tags       = { Environment = "sample" }
