#!/bin/sh
# Makes the manifests of this directory from the charts. Helm must be there; HELM names another program.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
to=${1:-$root/kubernetes}

make() {
    file=$1 name=$2 chart=$3
    shift 3
    echo "# Made by deploy/kubernetes/make.sh of deploy/helm/$chart: change that." > "$to/$file"
    "${HELM:-helm}" template "$name" "$root/helm/$chart" --kube-version 1.30.0 --no-hooks "$@" |
        sed -e '/helm.sh\/chart: /d' -e '/app.kubernetes.io\/managed-by: Helm/d' >> "$to/$file"
}

small=$root/helm/sparkmirror/values-small.yaml
example=config.text=$root/kubernetes/mm2.properties
make mirror.yaml mirror sparkmirror --set fullnameOverride=sparkmirror --set-file "$example"
make mirror-small.yaml mirror sparkmirror --set fullnameOverride=sparkmirror --set-file "$example" --values "$small"
make operator.yaml sparkmirror-operator sparkmirror-operator --namespace sparkmirror-operator
