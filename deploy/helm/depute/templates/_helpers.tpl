{{/* The name of the release's objects. */}}
{{- define "depute.name" -}}
{{- if contains "depute" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-depute{{ end }}
{{- end }}

{{/* The labels that select the pods of one service: (dict "root" $ "service" "tasks"). */}}
{{- define "depute.selector" -}}
app.kubernetes.io/name: depute
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .service }}
{{- end }}

{{/* All labels of an object of one service. */}}
{{- define "depute.labels" -}}
{{ include "depute.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{/* The ports on which the processes listen. */}}
{{- define "depute.port" -}}
{{- get (dict "gateway" "8080" "registry" "8081" "tasks" "8082" "tokens" "8083" "verifier" "8084") . -}}
{{- end }}

{{- define "depute.scheme" -}}
{{ if .Values.tls.secret }}https{{ else }}http{{ end }}
{{- end }}
