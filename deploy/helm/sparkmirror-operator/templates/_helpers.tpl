{{- define "operator.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "operator.selector" -}}
app.kubernetes.io/name: sparkmirror-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* Labels and annotations of an object: root, its own labels, its own annotations. The chart's labels count. */ -}}
{{- define "operator.labelled" -}}
{{- $root := index . 0 -}}
{{- $labels := include "operator.selector" $root | fromYaml -}}
{{- $_ := set $labels "app.kubernetes.io/version" $root.Chart.AppVersion -}}
{{- $_ := set $labels "app.kubernetes.io/managed-by" $root.Release.Service -}}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_") -}}
labels:
  {{- toYaml (merge $labels (deepCopy (index . 1)) (deepCopy $root.Values.commonLabels)) | nindent 2 }}
{{- with merge (deepCopy (index . 2)) (deepCopy $root.Values.commonAnnotations) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "operator.image" -}}
{{- $registry := (.Values.global | default dict).imageRegistry | default .Values.image.registry -}}
{{- with $registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{- .Values.image.repository -}}
{{- if .Values.image.digest -}}
@{{ .Values.image.digest }}
{{- else -}}
:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "operator.namespaces" -}}
{{- if not .Values.watchAnyNamespace -}}
{{- join " " (.Values.watchNamespaces | default (list .Release.Namespace)) -}}
{{- end -}}
{{- end }}

{{- define "operator.rules" -}}
- apiGroups: [sparkmirror.io]
  resources: [mirrors]
  verbs: [get, list, watch]
- apiGroups: [sparkmirror.io]
  resources: [mirrors/status]
  verbs: [patch]
- apiGroups: [kafka.strimzi.io]
  resources: [kafkamirrormaker2s]
  verbs: [get, list, watch, patch]
- apiGroups: [kafka.strimzi.io]
  resources: [kafkamirrormaker2s/status]
  verbs: [patch]
# Whether a Secret that is missing is still to come, and whether Strimzi's own operator runs a resource
- apiGroups: [kafka.strimzi.io]
  resources: [kafkausers]
  verbs: [get]
- apiGroups: [core.strimzi.io]
  resources: [strimzipodsets]
  verbs: [get]
- apiGroups: [""]
  resources: [secrets]
  verbs: [get]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, create, patch, delete]
- apiGroups: [""]
  resources: [services, serviceaccounts]
  verbs: [get, create, patch, delete]
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, create, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, create, patch, delete]
{{- end }}
