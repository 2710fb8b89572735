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

{{- define "sparkmirror.labels" -}}
{{ include "sparkmirror.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "sparkmirror.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "sparkmirror.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "sparkmirror.fullname" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end }}

{{- define "sparkmirror.file" -}}
/etc/sparkmirror/config/{{ .Values.config.file }}
{{- end }}

{{- define "sparkmirror.podSecurity" -}}
{{- $restricted := dict "runAsNonRoot" true "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{ toYaml (merge (deepCopy .Values.podSecurityContext) $restricted) }}
{{- end }}

{{- define "sparkmirror.containerSecurity" -}}
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
readOnlyRootFilesystem: true
{{- end }}

{{- define "sparkmirror.mounts" -}}
- {name: config, mountPath: /etc/sparkmirror/config, readOnly: true}
{{- range $number, $name := .Values.secrets }}
- {name: secret-{{ $number }}, mountPath: /etc/sparkmirror/secrets/{{ $name }}, readOnly: true}
{{- end }}
- {name: tmp, mountPath: /tmp}
- {name: state, mountPath: /var/lib/sparkmirror}
{{- end }}

{{- define "sparkmirror.volumes" -}}
- name: config
{{- if .Values.config.existingSecret }}
  secret:
    secretName: {{ .Values.config.existingSecret }}
{{- else }}
  configMap:
    name: {{ .Values.config.existingConfigMap | default (include "sparkmirror.fullname" .) }}
{{- end }}
{{- range $number, $name := .Values.secrets }}
- name: secret-{{ $number }}
  secret:
    secretName: {{ $name }}
{{- end }}
- name: tmp
  emptyDir: {}
- name: state
  emptyDir: {}
{{- end }}

{{- define "sparkmirror.spread" -}}
{{- if .Values.topologySpreadConstraints -}}
{{ toYaml .Values.topologySpreadConstraints }}
{{- else -}}
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "sparkmirror.selector" . | nindent 6 }}
      app.kubernetes.io/component: mirror
{{- end -}}
{{- end }}

{{- /* What the driver is told beside the file: the verb's arguments, a list in YAML. */ -}}
{{- define "sparkmirror.arguments" -}}
- run
- {{ include "sparkmirror.file" . }}
{{- if .Values.secrets }}
- --secrets
- /etc/sparkmirror/secrets
{{- end }}
- --metrics-port
- "9404"
{{- range .Values.arguments }}
- {{ . | quote }}
{{- end }}
{{- $ours := dict -}}
{{- if gt (int .Values.spark.executors) 0 -}}
{{- $ours = include (printf "sparkmirror.executors.%s" .Values.form) . | fromYaml -}}
{{- end -}}
{{- range $key, $value := merge (deepCopy .Values.spark.settings) $ours }}
- --spark
- {{ printf "%s=%v" $key $value | quote }}
{{- end }}
{{- end }}

{{- /* What Spark must know to have executors as pods, where the driver is one of ours. */ -}}
{{- define "sparkmirror.executors.deployment" -}}
spark.master: k8s://https://kubernetes.default.svc
spark.kubernetes.namespace: {{ .Release.Namespace }}
spark.kubernetes.container.image: {{ include "sparkmirror.image" . }}
spark.kubernetes.container.image.pullPolicy: {{ .Values.image.pullPolicy }}
spark.kubernetes.authenticate.driver.serviceAccountName: {{ include "sparkmirror.serviceAccount" . }}
spark.kubernetes.authenticate.executor.serviceAccountName: default
spark.kubernetes.driver.pod.name: $(SPARKMIRROR_POD_NAME)
spark.kubernetes.executor.podTemplateFile: /etc/sparkmirror/executor/pod.yaml
spark.driver.host: $(SPARKMIRROR_POD_IP)
spark.driver.bindAddress: $(SPARKMIRROR_POD_IP)
spark.driver.port: "7078"
spark.driver.blockManager.port: "7079"
{{- if .Values.spark.warmStandby }}
spark.sparkmirror.standby.warm: "true"
{{- end }}
spark.executor.instances: {{ .Values.spark.executors | quote }}
spark.executor.cores: {{ .Values.spark.executor.cores | quote }}
spark.executor.memory: {{ .Values.spark.executor.memory }}
spark.authenticate: "true"
spark.network.crypto.enabled: "true"
{{- end }}

{{- /* The same where spark-submit was told the rest. */ -}}
{{- define "sparkmirror.executors.sparkApplication" -}}
spark.master: k8s://https://kubernetes.default.svc
spark.authenticate: "true"
spark.network.crypto.enabled: "true"
{{- end }}
