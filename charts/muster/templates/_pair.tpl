{{/* The Deployment of one pair, kube-scheduler and extender, with its configuration: of the pool, if there is one. */}}
{{- define "muster.pair" }}
{{- $suffix := include "muster.suffix" . }}
{{- $part := printf "scheduler%s" $suffix }}
{{- $values := .Values.scheduler }}
{{- $extender := .Values.extender }}
{{- with .Pool }}
{{- $values = merge (dict "replicas" (.replicas | default $values.replicas)) $values }}
{{- with .schedulerResources }}{{ $values = merge (dict "resources" .) (omit $values "resources") }}{{ end }}
{{- end }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  {{- include "muster.metadata" (list . $part (printf "muster-kube-scheduler%s" $suffix)) | nindent 2 }}
data:
  config.yaml: |
    {{- include "muster.kubeSchedulerConfiguration" . | nindent 4 }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "muster.metadata" (list . $part (printf "muster-%s" $part)) | nindent 2 }}
spec:
  replicas: {{ $values.replicas }}
  strategy:
    rollingUpdate:
      maxUnavailable: 1
      maxSurge: 0 # only one leads; a further replica would only use capacity, and could preempt users' pods
  selector:
    matchLabels:
      {{- include "muster.selector" (list . $part) | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "muster.labels" . | nindent 8 }}
        app.kubernetes.io/component: {{ $part }}
        {{- with $values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      annotations:
        kubectl.kubernetes.io/default-container: extender
        muster.dev/configuration: {{ printf "%s%s" (include "muster.kubeSchedulerConfiguration" .) (include "muster.settingsOf" (list . "extender")) | sha256sum }}
        {{- with $values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      {{- include "muster.podSpec" (list . $part $values) | nindent 6 }}
      terminationGracePeriodSeconds: 30
      containers:
      - name: kube-scheduler
        image: {{ include "muster.image" (list . $values.image (include "muster.kubeSchedulerTag" .)) }}
        imagePullPolicy: {{ $values.image.pullPolicy }}
        command: [kube-scheduler]
        args:
        - --config=/etc/muster/scheduler/config.yaml
        - --bind-address=$(POD_IP)
        - --secure-port={{ $values.port }}
        - --v={{ $values.logVerbosity }}
        {{- with include "muster.kubeSchedulerGates" . }}
        - {{ . }}
        {{- end }}
        {{- range $values.extraArgs }}
        - {{ . | quote }}
        {{- end }}
        {{- include "muster.env" (list . $values) | nindent 8 }}
        ports:
        - name: scheduler
          containerPort: {{ $values.port }}
        livenessProbe:
          httpGet:
            path: /livez
            port: scheduler
            scheme: HTTPS
          periodSeconds: 10
          timeoutSeconds: 5
          failureThreshold: 6
        readinessProbe:
          httpGet:
            path: /readyz
            port: scheduler
            scheme: HTTPS
          periodSeconds: 5
          timeoutSeconds: 5
        startupProbe:
          httpGet:
            path: /livez
            port: scheduler
            scheme: HTTPS
          periodSeconds: 2
          timeoutSeconds: 5
          failureThreshold: 60
        {{- include "muster.containerSecurity" . | nindent 8 }}
        resources:
          {{- toYaml $values.resources | nindent 10 }}
        volumeMounts:
        - name: scheduler
          mountPath: /etc/muster/scheduler
          readOnly: true
        {{- if $extender.tls.enabled }}
        - name: client-tls
          mountPath: /etc/muster/extender-tls
          readOnly: true
        {{- end }}
      {{- include "muster.extenderContainer" . | nindent 6 }}
      volumes:
      - name: scheduler
        configMap:
          name: muster-kube-scheduler{{ $suffix }}
      - name: settings
        configMap:
          name: muster-extender-settings{{ $suffix }}
      - name: planning
        configMap:
          name: muster-planning{{ $suffix }}
      {{- if $extender.tls.enabled }}
      {{- include "muster.extenderCertificate" (list "tls" $extender.tls.existingSecret "tls") | nindent 6 }}
      {{- include "muster.extenderCertificate" (list "client-tls" $extender.tls.existingClientSecret "client") | nindent 6 }}
      {{- end }}
      {{- if include "muster.records" . }}
      - name: recording
        {{- with $extender.record.claim }}
        persistentVolumeClaim:
          claimName: {{ . }}
        {{- else }}
        emptyDir:
          sizeLimit: {{ mul $extender.record.mib 2 }}Mi
        {{- end }}
      {{- end }}
{{- include "muster.podDisruptionBudget" (list . $part $values) }}
{{- end }}
