{{- define "wireglot.name" -}}
{{- if contains "wireglot" .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-wireglot" (.Release.Name | trunc 43 | trimSuffix "-") }}{{ end }}
{{- end }}

{{- define "wireglot.selector" -}}
app.kubernetes.io/name: wireglot
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "wireglot.labels" -}}
{{ include "wireglot.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "wireglot.configMap" -}}
{{- if .Values.config }}{{ include "wireglot.name" . }}{{ else }}{{ .Values.configMapName | default (include "wireglot.name" .) }}{{ end }}
{{- end }}

{{- define "wireglot.account" -}}
{{- .Values.serviceAccount.name | default (include "wireglot.name" .) }}
{{- end }}
