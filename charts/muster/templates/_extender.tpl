{{/* Both files of the extender: its settings, and the planner's configuration. */}}
{{- define "muster.extenderConfigs" }}
{{- $part := printf "scheduler%s" (include "muster.suffix" .) }}
{{ include "muster.settings" (list . $part "extender") }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  {{- include "muster.metadata" (list . $part (printf "muster-planning%s" (include "muster.suffix" .))) | nindent 2 }}
{{- with include "muster.planning" . }}
data:
  config.yaml: |
    {{- . | nindent 4 }}
{{- end }}
{{- end }}

{{/* KubeSchedulerConfiguration of Muster's own kube-scheduler, of the pool if there is one. */}}
{{- define "muster.kubeSchedulerConfiguration" -}}
{{- $config := .Files.Get "files/kube-scheduler.yaml" | fromYaml -}}
{{- $_ := set $config.leaderElection "resourceNamespace" .Release.Namespace -}}
{{- with .Pool }}
{{- $_ := set $config.leaderElection "resourceName" (printf "muster-scheduler-%s" .name) -}}
{{- $profile := first $config.profiles -}}
{{- $_ := set $profile "schedulerName" (printf "muster-%s" .name) -}}
{{- $term := dict "matchExpressions" (list (dict "key" "muster.dev/node-pool" "operator" "In" "values" (list .name))) -}}
{{- range $profile.pluginConfig }}
{{- $_ := set .args.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution "nodeSelectorTerms" (list $term) -}}
{{- end -}}
{{- $_ := set $config "profiles" (list $profile) -}}
{{- end -}}
{{- range $config.extenders }}
{{- $_ := set . "urlPrefix" (printf "%s://127.0.0.1:%d" ($.Values.extender.tls.enabled | ternary "https" "http") (int $.Values.extender.port)) }}
{{- if $.Values.extender.tls.enabled }}
{{- $_ := set . "enableHTTPS" true }}
{{- $folder := "/etc/muster/extender-tls" }}
{{- $files := dict "certFile" (printf "%s/client.crt" $folder) "keyFile" (printf "%s/client.key" $folder) "caFile" (printf "%s/ca.crt" $folder) }}
{{- $_ := set . "tlsConfig" (merge $files (dict "serverName" "muster-extender")) }}
{{- end }}
{{- end -}}
{{- toYaml $config -}}
{{- end }}

{{/* The volume with a certificate between kube-scheduler and the extender: (list volume secret "client") */}}
{{- define "muster.extenderCertificate" -}}
- name: {{ index . 0 }}
  secret:
    secretName: {{ index . 1 }}
    defaultMode: 0440
    items:
    - {key: tls.crt, path: {{ index . 2 }}.crt}
    - {key: tls.key, path: {{ index . 2 }}.key}
    - {key: ca.crt, path: ca.crt}
{{- end }}

{{/* What the cluster's own KubeSchedulerConfiguration needs: profiles and extenders. */}}
{{- define "muster.sharedConfiguration" -}}
{{- $config := .Files.Get "files/kube-scheduler-shared.yaml" | fromYaml -}}
{{- range $config.extenders }}{{ $_ := set . "urlPrefix" (printf "http://127.0.0.1:%d" (int $.Values.extender.port)) }}{{ end -}}
{{- toYaml $config -}}
{{- end }}

{{/* The planner's configuration, as text; empty means its own defaults. */}}
{{- define "muster.planning" -}}
{{- $config := .Values.extender.config -}}
{{- with .Pool }}{{ with .config }}{{ $config = . }}{{ end }}{{ end -}}
{{- if kindIs "string" $config }}{{ $config }}{{ else if $config }}{{ toYaml $config }}{{ end -}}
{{- end }}

{{- define "muster.extenderContainer" -}}
{{- $values := .Values.extender }}
- name: extender
  image: {{ include "muster.image" (list . .Values.image .Chart.AppVersion) }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  command: [python, -m, extender]
  args:
  - --host=127.0.0.1
  - --status-host=$(POD_IP)
  - --settings=/etc/muster/settings/settings.yaml
  {{- include "muster.env" (list . $values) | nindent 2 }}
  ports:
  - name: status
    containerPort: {{ $values.statusPort }}
  {{- include "muster.probes" "status" | nindent 2 }}
  {{- include "muster.containerSecurity" . | nindent 2 }}
  resources:
    {{- toYaml ((.Pool | default dict).extenderResources | default $values.resources) | nindent 4 }}
  volumeMounts:
  - name: settings
    mountPath: /etc/muster/settings
    readOnly: true
  - name: planning
    mountPath: /etc/muster/planning
    readOnly: true
  {{- if $values.tls.enabled }}
  - name: tls
    mountPath: /etc/muster/tls
    readOnly: true
  {{- end }}
  {{- if include "muster.records" . }}
  - name: recording
    mountPath: /var/lib/muster/recording
    {{- with .Pool }}
    subPath: {{ .name }}
    {{- end }}
  {{- end }}
{{- end }}

{{/* Whether the extender records: in a pod with volumes of its own only. */}}
{{- define "muster.records" -}}
{{- if and .Values.extender.record.enabled (eq .Values.scheduler.mode "cluster") }}
{{- fail "extender.record.enabled: not with scheduler.mode cluster; `muster record` can record from outside (docs/replay.md)" }}
{{- end -}}
{{- if and .Values.extender.record.enabled (eq .Values.scheduler.mode "muster") }}yes{{ end -}}
{{- end }}
