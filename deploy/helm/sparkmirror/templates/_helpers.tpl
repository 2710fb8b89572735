{{- define "sparkmirror.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- define "sparkmirror.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "sparkmirror.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "sparkmirror.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "sparkmirror.selector" -}}
app.kubernetes.io/name: {{ include "sparkmirror.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* Labels by which others find the working pods: root. */ -}}
{{- define "sparkmirror.mirrors" -}}
{{ include "sparkmirror.selector" . }}
app.kubernetes.io/component: mirror
{{- end }}

{{- /* Labels: root, component or empty, more labels. The chart's own count. */ -}}
{{- define "sparkmirror.labels" -}}
{{- $root := index . 0 -}}
{{- $own := include "sparkmirror.selector" $root | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/version" $root.Chart.AppVersion -}}
{{- $_ := set $own "app.kubernetes.io/managed-by" $root.Release.Service -}}
{{- $_ := set $own "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_") -}}
{{- with index . 1 -}}
{{- $_ := set $own "app.kubernetes.io/component" . -}}
{{- end -}}
{{ toYaml (merge $own (deepCopy (index . 2)) (deepCopy $root.Values.commonLabels)) }}
{{- end }}

{{- /* Labels and annotations of an object: root, component, its own labels, its own annotations. */ -}}
{{- define "sparkmirror.labelled" -}}
labels:
  {{- include "sparkmirror.labels" (list (index . 0) (index . 1) (index . 2)) | nindent 2 }}
{{- with merge (deepCopy (index . 3)) (deepCopy (index . 0).Values.commonAnnotations) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Defaults, and values that count over them, false ones too. */ -}}
{{- define "sparkmirror.over" -}}
{{- $all := deepCopy (index . 0) -}}
{{- range $key, $value := index . 1 }}{{ $_ := set $all $key $value }}{{ end -}}
{{ toYaml $all }}
{{- end }}

{{- define "sparkmirror.image" -}}
{{- $registry := (.Values.global | default dict).imageRegistry | default .Values.image.registry -}}
{{- with $registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{- .Values.image.repository -}}
{{- if .Values.image.digest -}}
@{{ .Values.image.digest }}
{{- else -}}
:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "sparkmirror.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "sparkmirror.fullname" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end }}

{{- define "sparkmirror.executorAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.executorName | default (printf "%s-executor" (include "sparkmirror.fullname" .)) }}
{{- else -}}
{{ .Values.serviceAccount.executorName | default "default" }}
{{- end -}}
{{- end }}

{{- define "sparkmirror.file" -}}
/etc/sparkmirror/config/{{ .Values.config.file }}
{{- end }}

{{- /* How many executors; empty: tasks run in the working pod. */ -}}
{{- define "sparkmirror.executors" -}}
{{- $count := int .Values.spark.executors -}}
{{- if eq .Values.form "sparkApplication" }}{{ $count = max 1 $count }}{{ end -}}
{{- if $count }}{{ $count }}{{ end -}}
{{- end }}

{{- /* How many workers at most; empty: there is no Spark cluster of the chart's. */ -}}
{{- define "sparkmirror.workers" -}}
{{- with int .Values.workers.max }}{{ . }}{{ end -}}
{{- end }}

{{- /* A digest of the file: a changed one takes new pods. One that exists is looked up, which a rendering without a cluster can't. */ -}}
{{- define "sparkmirror.checksum" -}}
{{- $config := .Values.config -}}
{{- if not (regexMatch "\\.ya?ml$" $config.file) -}}
{{- if $config.text -}}
{{ $config.text | sha256sum }}
{{- else -}}
{{- $kind := ternary "Secret" "ConfigMap" (ne $config.existingSecret "") -}}
{{- $found := lookup "v1" $kind .Release.Namespace ($config.existingSecret | default $config.existingConfigMap) -}}
{{- with get ($found.data | default dict) $config.file -}}
{{ . | sha256sum }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}
