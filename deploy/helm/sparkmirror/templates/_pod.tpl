{{- /* Parts of pods, each for root and component: mirror, executor, worker, master or test. */ -}}

{{- define "sparkmirror.podMetadata" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
labels:
  {{- include "sparkmirror.labels" (list $root $component $root.Values.podLabels) | nindent 2 }}
{{- $own := dict -}}
{{- $checksum := include "sparkmirror.checksum" $root -}}
{{- if and $checksum (eq $component "mirror") }}{{ $_ := set $own "checksum/config" $checksum }}{{ end -}}
{{- with merge $own (deepCopy $root.Values.podAnnotations) (deepCopy $root.Values.commonAnnotations) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Where pods run, and as whom. */ -}}
{{- define "sparkmirror.placed" -}}
{{- $root := index . 0 -}}
{{- with concat (($root.Values.global | default dict).imagePullSecrets | default list) $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - {name: {{ if kindIs "string" . }}{{ . }}{{ else }}{{ .name }}{{ end }}}
  {{- end }}
{{- end }}
{{- with $root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
securityContext:
  {{- $restricted := dict "runAsNonRoot" true "seccompProfile" (dict "type" "RuntimeDefault") }}
  {{- /* A volume claim is root's otherwise. */}}
  {{- if eq (index . 1) "master" }}{{ $_ := set $restricted "fsGroup" 10001 }}{{ end }}
  {{- include "sparkmirror.over" (list $restricted $root.Values.podSecurityContext) | nindent 2 }}
{{- with $root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "sparkmirror.podSpec" -}}
{{- $root := index . 0 -}}
{{- $executors := include "sparkmirror.executors" $root -}}
{{- if eq (index . 1) "mirror" -}}
serviceAccountName: {{ include "sparkmirror.serviceAccount" $root }}
# Spark asks the API for executors; else nobody needs it.
automountServiceAccountToken: {{ ne $executors "" }}
terminationGracePeriodSeconds: {{ $root.Values.terminationGracePeriodSeconds }}
topologySpreadConstraints:
{{- with $root.Values.topologySpreadConstraints }}
  {{- toYaml . | nindent 2 }}
{{- else }}
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "sparkmirror.mirrors" $root | nindent 8 }}
{{- end }}
{{- else -}}
serviceAccountName: {{ include "sparkmirror.executorAccount" $root }}
automountServiceAccountToken: false
{{- end }}
{{- include "sparkmirror.placed" . }}
{{- with $root.Values.initContainers }}
initContainers:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
  - name: config
    {{- with $root.Values.config.existingConfigMap }}
    configMap:
      name: {{ . }}
    {{- else }}
    secret:
      secretName: {{ $root.Values.config.existingSecret | default (include "sparkmirror.fullname" $root) }}
    {{- end }}
  {{- range $number, $name := $root.Values.secrets }}
  - name: secret-{{ $number }}
    secret:
      secretName: {{ $name }}
  {{- end }}
  - name: tmp
    emptyDir: {}
  - name: state
    emptyDir: {}
  {{- with $root.Values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "sparkmirror.containerSecurity" -}}
{{- $drop := dict "drop" (list "ALL") -}}
{{- $restricted := dict "allowPrivilegeEscalation" false "capabilities" $drop "readOnlyRootFilesystem" true -}}
{{- include "sparkmirror.over" (list $restricted (index . 0).Values.containerSecurityContext) -}}
{{- end }}

{{- /* What containers of mirror, executors and workers have alike. */ -}}
{{- define "sparkmirror.container" -}}
{{- $root := index . 0 -}}
{{- with $root.Values.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- include "sparkmirror.containerSecurity" . | nindent 2 }}
volumeMounts:
  - {name: config, mountPath: /etc/sparkmirror/config, readOnly: true}
  {{- range $number, $name := $root.Values.secrets }}
  - {name: secret-{{ $number }}, mountPath: /etc/sparkmirror/secrets/{{ $name }}, readOnly: true}
  {{- end }}
  - {name: tmp, mountPath: /tmp}
  - {name: state, mountPath: /var/lib/sparkmirror}
  {{- with $root.Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- /* What only the mirror's container has. */ -}}
{{- define "sparkmirror.mirror" -}}
{{- $root := index . 0 -}}
startupProbe:
  httpGet: {path: /health, port: metrics}
  {{- toYaml $root.Values.startupProbe | nindent 2 }}
readinessProbe:
  httpGet: {path: /ready, port: metrics}
  {{- toYaml $root.Values.readinessProbe | nindent 2 }}
livenessProbe:
  httpGet: {path: /health, port: metrics}
  {{- toYaml $root.Values.livenessProbe | nindent 2 }}
resources:
  {{- toYaml $root.Values.resources | nindent 2 }}
{{- end }}
