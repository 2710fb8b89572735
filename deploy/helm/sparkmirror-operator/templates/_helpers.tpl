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

{{- define "operator.labels" -}}
{{ include "operator.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "operator.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "operator.namespaces" -}}
{{- if not .Values.watchAnyNamespace -}}
{{- join " " (.Values.watchNamespaces | default (list .Release.Namespace)) -}}
{{- end -}}
{{- end }}

{{- define "operator.rules" -}}
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
