{{/* KubeSchedulerConfiguration of Muster's own kube-scheduler. */}}
{{- define "muster.kubeSchedulerConfiguration" -}}
{{- $config := .Files.Get "files/kube-scheduler.yaml" | fromYaml -}}
{{- $_ := set $config.leaderElection "resourceNamespace" .Release.Namespace -}}
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
    {{- toYaml $values.resources | nindent 4 }}
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
  - name: tmp
    mountPath: /tmp
{{- end }}
