{{/* Names are fixed: what Muster serves (Leases, webhooks, CRDs) exists once in a cluster, hence the release too. */}}

{{- define "muster.labels" -}}
app.kubernetes.io/name: muster
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: muster
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* What names of the objects of a node pool's pair end with; nothing for the default pool. */}}
{{- define "muster.suffix" -}}
{{- with .Pool }}-{{ .name }}{{ end -}}
{{- end }}

{{/* Labels by which the pods of a part are selected: (list $ "webhook") */}}
{{- define "muster.selector" -}}
app.kubernetes.io/name: muster
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* Metadata of an object of a part: (list $ "webhook" "muster-webhook") */}}
{{- define "muster.metadata" -}}
name: {{ index . 2 }}
namespace: {{ (index . 0).Release.Namespace }}
labels:
  {{- include "muster.labels" (index . 0) | nindent 2 }}
  app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* Reference of an image: (list $ .Values.image "default tag") */}}
{{- define "muster.image" -}}
{{- $image := index . 1 -}}
{{- $name := printf "%s/%s" (trimSuffix "/" $image.registry) $image.repository | trimPrefix "/" -}}
{{- if $image.digest -}}
{{ $name }}@{{ $image.digest }}
{{- else -}}
{{ $name }}:{{ $image.tag | default (index . 2) }}
{{- end -}}
{{- end }}

{{/* The version of the cluster without what vendors add to it, as kube-scheduler's images are tagged. */}}
{{- define "muster.kubeSchedulerTag" -}}
{{- regexFind "^v[0-9]+\\.[0-9]+\\.[0-9]+" .Capabilities.KubeVersion.Version -}}
{{- end }}

{{/*
The gate without which kube-scheduler queues the pods of a native PodGroup as one: a pod that still has a gate of Muster's
would hold back all others (docs/native-podgroups.md). kube-scheduler before 1.35 does not know it, and would not start.
*/}}
{{- define "muster.kubeSchedulerGates" -}}
{{- $tag := .Values.scheduler.image.tag | default "" | toString | regexFind "^v?[0-9]+\\.[0-9]+\\.[0-9]+" -}}
{{- if semverCompare ">=1.35.0" ($tag | default (include "muster.kubeSchedulerTag" .)) }}--feature-gates=GenericWorkload=false{{ end -}}
{{- end }}

{{/* What every pod has: (list $ "webhook" $values) */}}
{{- define "muster.podSpec" -}}
{{- $values := index . 2 -}}
serviceAccountName: muster-{{ trimSuffix (include "muster.suffix" (index . 0)) (index . 1) }}
{{- with (index . 0).Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- $own := dict "matchLabels" (include "muster.selector" (list (index . 0) (index . 1)) | fromYaml) }}
{{- if $values.affinity }}
affinity:
  {{- toYaml $values.affinity | nindent 2 }}
{{- else if hasKey $values "topologySpreadConstraints" }}
{{/* Zones are no constraint beside that of nodes: where a node has no zone, the scores of both would be ignored. */}}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: topology.kubernetes.io/zone
        labelSelector:
          {{- toYaml $own | nindent 10 }}
{{- end }}
{{- if hasKey $values "topologySpreadConstraints" }}
topologySpreadConstraints:
{{- range $values.topologySpreadConstraints }}
  - {{ merge (deepCopy .) (dict "labelSelector" $own) | toYaml | nindent 4 | trim }}
{{- else }}
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    matchLabelKeys: [pod-template-hash]
    labelSelector:
      {{- toYaml $own | nindent 6 }}
{{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{/* Fail if containers of one pod listen at the same port: (list "webhook.port" 9443 "webhook.statusPort" 8080) */}}
{{- define "muster.differentPorts" -}}
{{- $taken := dict -}}
{{- $given := . -}}
{{- range $at := untilStep 0 (len .) 2 -}}
{{- $name := index $given $at -}}
{{- $port := index $given (add1 $at) | int | toString -}}
{{- if hasKey $taken $port }}{{ fail (printf "%s and %s are both %s, and listen in one pod; set one of them to another port" (get $taken $port) $name $port) }}{{ end -}}
{{- $_ := set $taken $port $name -}}
{{- end -}}
{{- end }}

{{/* Fail unless a text is empty or has certificates (PEM); helm parses each beside a key, which it does not compare. */}}
{{- define "muster.checkedCertificates" -}}
{{- range splitList "-----END CERTIFICATE-----" . -}}
{{- with trim . -}}
{{- $_ := buildCustomCert (printf "%s\n-----END CERTIFICATE-----\n" . | b64enc) (genPrivateKey "ed25519" | b64enc) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "muster.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{/* Environment of a process of Muster's: (list $ $values) */}}
{{- define "muster.env" -}}
env:
- name: TMPDIR # memory of the container; kubectl drain counts every emptyDir as data to lose
  value: /dev/shm
- name: POD_IP
  valueFrom:
    fieldRef: # atomic, and so with its default
      apiVersion: v1
      fieldPath: status.podIP
{{- with (index . 1).extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Probes of a status port, by the port's name. What hangs does not end by itself, and is not waited for as long as a pod's end. */}}
{{- define "muster.probes" -}}
livenessProbe:
  httpGet:
    path: /healthz
    port: {{ . }}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
  terminationGracePeriodSeconds: 30
readinessProbe:
  httpGet:
    path: /readyz
    port: {{ . }}
  periodSeconds: 5
  timeoutSeconds: 5
startupProbe:
  httpGet:
    path: /healthz
    port: {{ . }}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 60
  terminationGracePeriodSeconds: 30
{{- end }}

{{/* A PodDisruptionBudget: (list $ "webhook" $values) */}}
{{- define "muster.podDisruptionBudget" -}}
{{- $values := index . 2 -}}
{{- if and $values.podDisruptionBudget.enabled (gt (int $values.replicas) 1) }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "muster.metadata" (list (index . 0) (index . 1) (printf "muster-%s" (index . 1))) | nindent 2 }}
spec:
  maxUnavailable: {{ $values.podDisruptionBudget.maxUnavailable }}
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "muster.selector" (list (index . 0) (index . 1)) | nindent 6 }}
{{- end }}
{{- end }}

{{/* Which processes have a ServiceAccount: account and processes, as JSON. */}}
{{- define "muster.accounts" -}}
{{- $accounts := dict -}}
{{- if .Values.webhook.enabled }}{{ $_ := set $accounts "webhook" (list "webhook") }}{{ end -}}
{{- if eq .Values.scheduler.mode "muster" }}{{ $_ := set $accounts "scheduler" (list "scheduler" "extender") }}{{ end -}}
{{- if eq .Values.scheduler.mode "cluster" }}{{ $_ := set $accounts "extender" (list "extender") }}{{ end -}}
{{- if .Values.controller.enabled }}{{ $_ := set $accounts "controller" (list "controller") }}{{ end -}}
{{- $page := list -}}
{{- if .Values.web.enabled }}{{ $page = append $page "web" }}{{ end -}}
{{- if .Values.history.enabled }}{{ $page = append $page "history" }}{{ end -}}
{{- if $page }}{{ $_ := set $accounts "web" $page }}{{ end -}}
{{- toJson $accounts -}}
{{- end }}

{{/* The Lease of a process, as {namespace, name}: (list $ "extender") */}}
{{- define "muster.lease" -}}
{{- $root := index . 0 -}}
{{- if eq (index . 1) "controller" -}}
{{ toJson (dict "namespace" $root.Release.Namespace "name" "muster-controller") }}
{{- else if eq (index . 1) "history" -}}
{{ toJson (dict "namespace" $root.Release.Namespace "name" "muster-history") }}
{{- else if eq $root.Values.scheduler.mode "cluster" -}}
{{ toJson (dict "namespace" "kube-system" "name" "kube-scheduler") }}
{{- else -}}
{{ toJson (dict "namespace" $root.Release.Namespace "name" (printf "muster-scheduler%s" (include "muster.suffix" $root))) }}
{{- end -}}
{{- end }}

{{/* The manifests of a file, filled in: (list $ path names). The reasons of rules are for readers of the file. */}}
{{- define "muster.manifests" -}}
{{- $root := index . 0 -}}
{{- $text := $root.Files.Get (index . 1) -}}
{{- range $mark, $value := index . 2 }}{{ $text = replace $mark $value $text }}{{ end -}}
{{- range splitList "\n---\n" $text }}
{{- $object := fromYaml . }}
{{- range $object.rules }}{{ $_ := unset . "why" }}{{ $_ := unset . "implicit" }}{{ end }}
{{- $labels := merge (include "muster.labels" $root | fromYaml) ($object.metadata.labels | default dict) }}
{{- if not $root.Values.rbac.aggregate }}
{{- range list "view" "edit" "admin" }}{{ $_ := unset $labels (printf "rbac.authorization.k8s.io/aggregate-to-%s" .) }}{{ end }}
{{- end }}
{{- $_ := set $object.metadata "labels" $labels }}
{{- $namespaces := list "" }}
{{- if and (eq $object.kind "ClusterRoleBinding") (hasSuffix "-secrets" $object.metadata.name) }}
{{- $namespaces = $root.Values.rbac.secretNamespaces | default $namespaces }}
{{- end }}
{{- range $namespaces }}
{{- if . }}
{{- $_ := set $object "kind" "RoleBinding" }}
{{- $_ := set $object.metadata "namespace" . }}
{{- end }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}
{{- end }}

{{/* What to do where Kueue is installed and JobSet is not: Kueue's integration of TrainJobs watches JobSets. */}}
{{- define "muster.kueueWarning" -}}
{{- $versions := .Capabilities.APIVersions }}
{{- $kueue := or ($versions.Has "kueue.x-k8s.io/v1beta2") ($versions.Has "kueue.x-k8s.io/v1beta1") }}
{{- if and $kueue (not ($versions.Has "jobset.x-k8s.io/v1alpha2")) -}}
WARNING: the cluster has Kueue, but not the CRD of JobSet. Because the kind TrainJob now exists, Kueue starts its integration
trainer.kubeflow.org/trainjob, which waits for JobSets and ends the Kueue process every two minutes. Kueue's webhooks fail closed,
so no pod can be created in the meantime. Install the CRD of JobSet, or remove this integration from Kueue's configuration (docs/migrate.md#beside-kueue).
{{- end }}
{{- end }}
