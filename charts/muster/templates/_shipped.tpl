{{/* Files with the queues and runtimes that the controller applies. */}}
{{- define "muster.shipped" -}}
{{- $files := dict -}}
{{- range .Values.queues -}}
{{- $queue := dict "apiVersion" "scheduling.volcano.sh/v1beta1" "kind" "Queue" "metadata" (merge (dict "name" .name) (pick . "labels" "annotations")) "spec" (.spec | default dict) -}}
{{- if hasKey $files (printf "queue-%s.yaml" .name) }}{{ fail (printf "queues: the name %s occurs twice" .name) }}{{ end -}}
{{- $_ := set $files (printf "queue-%s.yaml" .name) (toYaml $queue) -}}
{{- end -}}
{{- if .Values.runtimes.enabled -}}
{{- range $path, $_ := .Files.Glob "runtimes/*.yaml" -}}
{{- if not (has (trimSuffix ".yaml" (base $path)) $.Values.runtimes.exclude) -}}
{{- $_ := set $files (printf "runtime-%s" (base $path)) ($.Files.Get $path) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $files -}}
{{- end }}
