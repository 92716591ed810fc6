{{/* The settings of each process, which are the same for all its pods (docs/configuration.md). As YAML.
     Their version is one that the previous version's processes read: old pods may restart during an upgrade. */}}

{{/* The source of the webhook's client authority as a volume has it; empty without one. */}}
{{- define "muster.clientCA" -}}
{{- $given := .Values.webhook.clientCA -}}
{{- if gt (len (compact (list $given.pem $given.configMap $given.secret))) 1 }}
{{- fail "webhook.clientCA: set one of pem, configMap and secret (docs/configuration.md)" }}
{{- end -}}
{{- if $given.secret -}}
secret: {secretName: {{ $given.secret }}, defaultMode: 0440, items: [{key: ca.crt, path: ca.crt}]}
{{- else if or $given.pem $given.configMap -}}
configMap: {name: {{ $given.configMap | default "muster-webhook-client-ca" }}, items: [{key: ca.crt, path: ca.crt}]}
{{- end -}}
{{- end }}

{{- define "muster.webhookSettings" -}}
{{- $values := .Values.webhook -}}
apiVersion: config.muster.dev/v1alpha1
kind: WebhookConfiguration
port: {{ $values.port }}
statusPort: {{ $values.statusPort }}
certFile: /etc/muster/tls/tls.crt
keyFile: /etc/muster/tls/tls.key
{{- if include "muster.clientCA" . }}
clientCaFile: /etc/muster/client-ca/ca.crt
{{- end }}
waitForCaBundles: true
markPods: {{ eq .Values.scheduler.mode "cluster" }}
nativePodGroups: {{ and .Values.nativePodGroups .Values.controller.enabled }}
durableHistory: {{ include "muster.durableHistory" . }}
{{- if $values.resourceGroups }}
config: /etc/muster/settings/admission.yaml
{{- end }}
{{- with .Values.traces.endpoint }}
tracesEndpoint: {{ . | quote }}
{{- end }}
logLevel: {{ $values.logLevel }}
{{- end }}

{{- define "muster.extenderSettings" -}}
{{- $values := .Values.extender -}}
{{- $lease := fromJson (include "muster.lease" (list . "extender")) -}}
apiVersion: config.muster.dev/v1alpha1
kind: ExtenderConfiguration
port: {{ $values.port }}
{{- if $values.tls.enabled }}
certFile: /etc/muster/tls/tls.crt
keyFile: /etc/muster/tls/tls.key
clientCaFile: /etc/muster/tls/ca.crt
{{- end }}
statusPort: {{ $values.statusPort }}
{{- with .Pool }}
nodePool: {{ .name | quote }}
{{- end }}
leaseNamespace: {{ $lease.namespace }}
leaseName: {{ $lease.name }}
barrierTimeout: {{ $values.barrierTimeoutSeconds }}
recoveryTimeout: {{ $values.recoveryTimeoutSeconds }}
stalenessGrace: {{ $values.stalenessGraceSeconds }}
{{- if include "muster.records" . }}
recordFolder: /var/lib/muster/recording
recordMiB: {{ $values.record.mib }}
recordHours: {{ $values.record.hours }}
{{- end }}
suspectConditions: {{ toJson $values.suspectConditions }}
suspectTaints: {{ toJson $values.suspectTaints }}
{{- if include "muster.planning" . }}
config: /etc/muster/planning/config.yaml
{{- end }}
{{- with .Values.traces.endpoint }}
tracesEndpoint: {{ . | quote }}
{{- end }}
logLevel: {{ $values.logLevel }}
{{- end }}

{{/* Whether the controller makes the certificate of the TrainJobs' status server itself. */}}
{{- define "muster.ownReports" -}}
{{- if and .Values.trainJobs.reports.enabled .Values.webhook.enabled (eq .Values.certificates.mode "own") }}yes{{ end -}}
{{- end }}

{{/* Whether the controller makes the certificate of the page itself. */}}
{{- define "muster.ownWeb" -}}
{{- if and .Values.web.enabled .Values.controller.enabled .Values.webhook.enabled (eq .Values.certificates.mode "own") }}yes{{ end -}}
{{- end }}

{{/* The host names of the page; localhost is for kubectl port-forward. */}}
{{- define "muster.webNames" -}}
{{- $service := printf "muster-web.%s.svc" .Release.Namespace -}}
{{- toJson (list $service (printf "%s.cluster.local" $service) "localhost") }}
{{- end }}

{{- define "muster.controllerSettings" -}}
{{- $values := .Values.controller -}}
{{- $reports := .Values.trainJobs.reports -}}
apiVersion: config.muster.dev/v1alpha1
kind: ControllerConfiguration
statusPort: {{ $values.statusPort }}
workers: {{ $values.workers }}
leaseNamespace: {{ .Release.Namespace }}
leaseName: muster-controller
nativePodGroups: {{ and .Values.nativePodGroups (ne .Values.scheduler.mode "cluster") }}
leaseDuration: {{ $values.leaseDurationSeconds }}
trainJobNetworkPolicies: {{ .Values.trainJobs.networkPolicies }}
shipped: /etc/muster/shipped
{{- if .Values.webhook.enabled }}
certSecret: {{ .Values.certificates.secretName }}
certDnsName: [muster-webhook.{{ .Release.Namespace }}.svc]
{{- if include "muster.ownWeb" . }}
webDnsName: {{ include "muster.webNames" . }}
{{- end }}
certIssuer: {{ eq .Values.certificates.mode "own" | ternary "own" "external" }}
{{- if .Values.certificates.caBundle }}
certCaFile: /etc/muster/settings/ca.crt
{{- end }}
{{- end }}
{{- if $reports.enabled }}
reportPort: {{ $reports.port }}
reportUrl: https://muster-reports.{{ .Release.Namespace }}.svc
reportCertFile: /etc/muster/reports/tls.crt
reportKeyFile: /etc/muster/reports/tls.key
reportCaFile: /etc/muster/reports/ca.crt
{{- end }}
{{- with .Values.traces.endpoint }}
tracesEndpoint: {{ . | quote }}
{{- end }}
logLevel: {{ $values.logLevel }}
{{- end }}

{{/* Whether the history is a file, which only the containers of one pod can share. */}}
{{- define "muster.historyFile" -}}
{{- if and .Values.history.enabled (not .Values.history.database.url) (not .Values.history.database.existingSecret) }}yes{{ end -}}
{{- end }}

{{/* Whether the history outlives its pod. */}}
{{- define "muster.durableHistory" -}}
{{- $given := .Values.history -}}
{{- if and $given.enabled (or (not (include "muster.historyFile" .)) $given.storage.size $given.storage.existingClaim) }}true{{ else }}false{{ end -}}
{{- end }}

{{/* The URL of the history's store, where no Secret has it. */}}
{{- define "muster.historyURL" -}}
{{- $given := .Values.history.database -}}
{{- if and $given.url $given.existingSecret }}
{{- fail "history.database: set one of url and existingSecret (docs/history.md)" }}
{{- end -}}
{{- if regexMatch "://[^/@]*:[^/@]*@" $given.url }}
{{- fail "history.database.url: it has a password in it; put the URL into a Secret and name that in history.database.existingSecret" }}
{{- end -}}
{{- if not $given.existingSecret -}}
{{ $given.url | default "sqlite:////var/lib/muster/history/history.db" }}
{{- end -}}
{{- end }}

{{- define "muster.historySettings" -}}
{{- $values := .Values.history -}}
apiVersion: config.muster.dev/v1alpha1
kind: HistoryConfiguration
statusPort: {{ $values.statusPort }}
{{- with include "muster.historyURL" . }}
database: {{ . | quote }}
{{- else }}
databaseFile: /etc/muster/history/url
{{- end }}
durable: {{ include "muster.durableHistory" . }}
keepDays: {{ $values.keepDays }}
keepUsageDays: {{ $values.keepUsageDays }}
maxMegabytes: {{ $values.maxMegabytes }}
leaseNamespace: {{ .Release.Namespace }}
leaseName: muster-history
logLevel: {{ $values.logLevel }}
{{- end }}

{{/* All settings of a process: those derived from the values, and the fields without a value: (list $ "webhook") */}}
{{- define "muster.settingsOf" -}}
{{- $process := index . 1 -}}
{{- $own := include (printf "muster.%sSettings" $process) (index . 0) -}}
{{- $extra := (index (index . 0).Values $process).extraSettings -}}
{{- range $name, $_ := $extra -}}
{{- if hasKey (fromYaml $own) $name }}
{{- fail (printf "%s.extraSettings.%s: this field follows from another value of the chart (docs/configuration.md); set that" $process $name) }}
{{- end }}
{{- end -}}
{{ $own }}
{{- with $extra }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The ConfigMap with that: (list $ component process), as in (list $ "scheduler" "extender") */}}
{{- define "muster.settings" -}}
---
apiVersion: v1
kind: ConfigMap
metadata:
  {{- include "muster.metadata" (list (index . 0) (index . 1) (printf "muster-%s-settings%s" (index . 2) (include "muster.suffix" (index . 0)))) | nindent 2 }}
data:
  settings.yaml: |
    {{- include "muster.settingsOf" (list (index . 0) (index . 2)) | nindent 4 }}
{{- end }}
