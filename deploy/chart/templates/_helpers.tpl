{{/* The labels that select the objects of a release; they never change. */}}
{{- define "xtimer.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "xtimer.labels" -}}
{{ include "xtimer.selector" . }}
app.kubernetes.io/version: {{ include "xtimer.version" . | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* True for several nodes. */}}
{{- define "xtimer.cluster" -}}
{{- if gt (int .Values.nodes) 1 }}true{{ end }}
{{- end }}

{{/* The version as a label and as the tag of an image, in which + may not be. */}}
{{- define "xtimer.version" -}}
{{ .Chart.AppVersion | replace "+" "_" }}
{{- end }}
