#!/bin/sh
# Builds the images sparkmirror and sparkmirror-prometheus for Fargate and pushes them to ECR, whose repositories must
# be there.
set -eu

usage() {
    cat >&2 <<END
usage: $0 ACCOUNT_ID REGION
       for example $0 012345678910 us-east-1

  TAG           of the images; the version of this checkout by default
  ARCHITECTURE  X86_64 (the default), or ARM64 for Graviton, as cpu-architecture in main.tfvars
  REGISTRY      another registry than the account's ECR in that region; then the script does not sign in to it
END
    exit 1
}

[ $# -eq 2 ] || usage
account=$1
region=$2
case $region in
    [0-9]*)
        echo "$0: $region is no region, the account id comes first: $0 $region $account" >&2
        exit 1
        ;;
esac
case $account in
    [0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]) ;;
    *)
        echo "$0: $account is no account id, which has twelve digits" >&2
        exit 1
        ;;
esac
root=$(cd "$(dirname "$0")/../.." && pwd)
version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' "$root/src/sparkmirror/__init__.py")
registry=${REGISTRY:-$account.dkr.ecr.$region.amazonaws.com}
mirror=$registry/sparkmirror:${TAG:-$version}
prometheus=$registry/sparkmirror-prometheus:${TAG:-$version}

# For Fargate's tasks, whatever this machine is
case ${ARCHITECTURE:-X86_64} in
    X86_64) export DOCKER_DEFAULT_PLATFORM=linux/amd64 ;;
    ARM64) export DOCKER_DEFAULT_PLATFORM=linux/arm64 ;;
    *)
        echo "ARCHITECTURE is $ARCHITECTURE; it is X86_64 or ARM64" >&2
        usage
        ;;
esac

if [ -z "${REGISTRY:-}" ]; then
    aws ecr get-login-password --region "$region" | docker login --username AWS --password-stdin "$registry"
fi
docker build --file "$root/deploy/docker/Dockerfile" --tag "$mirror" "$root"
docker build --file "$root/deploy/docker/prometheus/Dockerfile" --tag "$prometheus" "$root"
docker push "$mirror"
docker push "$prometheus"
printf '%s\n' "$mirror" "$prometheus"
