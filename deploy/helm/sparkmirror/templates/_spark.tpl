{{- /* The arguments of `sparkmirror run`, a list in YAML. */ -}}
{{- define "sparkmirror.arguments" -}}
- run
- {{ include "sparkmirror.file" . }}
{{- if .Values.secrets }}
- --secrets
- /etc/sparkmirror/secrets
{{- end }}
- --metrics-port
- "9404"
{{- range .Values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- range $key, $value := include "sparkmirror.settings" . | fromYaml }}
- --spark
- {{ printf "%s=%v" $key $value | quote }}
{{- end }}
{{- end }}

{{- /* All settings of Spark: those of the values count over the chart's. Each value is a text. */ -}}
{{- define "sparkmirror.settings" -}}
{{- $chart := dict -}}
{{- with .Values.spark.driver.memory -}}
{{- $_ := set $chart "spark.driver.memory" . -}}
{{- end -}}
{{- if include "sparkmirror.executors" . -}}
{{- $executors := include "sparkmirror.executorSettings" . | fromYaml -}}
{{- $form := include (printf "sparkmirror.settings.%s" .Values.form) . | fromYaml -}}
{{- $chart = merge $chart $executors $form -}}
{{- else if include "sparkmirror.workers" . -}}
{{- $chart = merge $chart (include "sparkmirror.workerSettings" . | fromYaml) -}}
{{- end -}}
{{- range $key, $value := .Values.spark.settings -}}
{{- $_ := set $chart $key (ternary $value (toJson $value) (kindIs "string" $value)) -}}
{{- end -}}
{{- toYaml $chart -}}
{{- end }}

{{- define "sparkmirror.executorSettings" -}}
{{- $executor := .Values.spark.executor -}}
spark.master: k8s://https://kubernetes.default.svc
spark.kubernetes.authenticate.executor.serviceAccountName: {{ include "sparkmirror.executorAccount" . }}
{{- if .Values.spark.warmStandby }}
spark.sparkmirror.standby.warm: "true"
{{- end }}
spark.executor.instances: {{ include "sparkmirror.executors" . | quote }}
spark.executor.cores: {{ $executor.cores | quote }}
spark.executor.memory: {{ $executor.memory }}
# Spark would ask for a tenth of the heap, which is too little for Python: docs/planning.md
spark.executor.memoryOverhead: {{ include "sparkmirror.memoryOverhead" . }}
{{ include "sparkmirror.authenticated" . }}
{{- end }}

{{- define "sparkmirror.memoryOverhead" -}}
{{- $executor := .Values.spark.executor -}}
{{- $executor.memoryOverhead | default (printf "%dm" (add 256 (mul 220 $executor.cores))) -}}
{{- end }}

{{- /* Where tasks run on the chart's workers. */ -}}
{{- define "sparkmirror.workerSettings" -}}
spark.master: {{ include "sparkmirror.master" . }}
spark.executor.memory: {{ .Values.spark.executor.memory }}
{{ include "sparkmirror.reachedDriver" . }}
{{ include "sparkmirror.authenticated" . }}
{{- end }}

{{- define "sparkmirror.master" -}}
spark://{{ include "sparkmirror.fullname" . }}-master:7077
{{- end }}

{{- define "sparkmirror.authenticated" -}}
spark.authenticate: "true"
spark.network.crypto.enabled: "true"
{{- end }}

{{- /* Where executors find a driver that is one of the Deployment's pods. */ -}}
{{- define "sparkmirror.reachedDriver" -}}
spark.driver.host: $(SPARKMIRROR_POD_IP)
spark.driver.bindAddress: $(SPARKMIRROR_POD_IP)
spark.driver.port: "7078"
spark.driver.blockManager.port: "7079"
{{- end }}

{{- /* Where the driver is one of the Deployment's pods. */ -}}
{{- define "sparkmirror.settings.deployment" -}}
spark.kubernetes.namespace: {{ .Release.Namespace | quote }}
spark.kubernetes.container.image: {{ include "sparkmirror.image" . }}
spark.kubernetes.container.image.pullPolicy: {{ .Values.image.pullPolicy }}
spark.kubernetes.authenticate.driver.serviceAccountName: {{ include "sparkmirror.serviceAccount" . }}
spark.kubernetes.driver.pod.name: $(SPARKMIRROR_POD_NAME)
spark.kubernetes.executor.podTemplateFile: /etc/sparkmirror/executor/pod.yaml
{{ include "sparkmirror.reachedDriver" . }}
{{- end }}

{{- /* Where the Spark operator starts the driver: what the heap leaves of the limit is for Python, and the JVM outside of its heap. */ -}}
{{- define "sparkmirror.settings.sparkApplication" -}}
{{- $limit := include "sparkmirror.mebibytes" (list "resources.limits.memory" ((.Values.resources.limits | default dict).memory | default "") "form sparkApplication") | int -}}
{{- $heap := .Values.spark.driver.memory | default "512m" -}}
{{- $rest := sub $limit (include "sparkmirror.mebibytes" (list "spark.driver.memory" (printf "%si" ($heap | upper)) "form sparkApplication")) | int -}}
{{- if lt $rest 256 -}}
{{- fail (printf "resources.limits.memory: %dMi are too little for a driver with a heap of %s (spark.driver.memory): it needs 256Mi more than the heap" $limit $heap) -}}
{{- end -}}
spark.driver.memory: {{ $heap }}
spark.driver.memoryOverhead: {{ $rest }}m
{{- end }}

{{- /* A quantity as a number: the value's name, the quantity, what needs it. */ -}}
{{- define "sparkmirror.mebibytes" -}}
{{- $quantity := index . 1 | toString -}}
{{- if not (regexMatch "^[1-9][0-9]*(Mi|Gi)$" $quantity) -}}
{{- fail (printf "%s: %s needs whole mebibytes or gibibytes, such as 1Gi, and this is %q" (index . 0) (index . 2) $quantity) -}}
{{- end -}}
{{- mul (regexFind "^[0-9]+" $quantity) (ternary 1024 1 (hasSuffix "Gi" $quantity)) -}}
{{- end }}
