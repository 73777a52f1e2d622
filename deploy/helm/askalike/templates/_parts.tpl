{{- define "askalike.name" -}}
{{- if contains "askalike" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}{{ printf "%s-askalike" (.Release.Name | trunc 31 | trimSuffix "-") }}{{ end }}
{{- end }}

{{- define "askalike.database" -}}
{{- if eq .Values.database "chart" }}postgresql://{{ include "askalike.name" . }}-postgresql/askalike
{{- else }}{{ .Values.database }}{{ end }}
{{- end }}

{{- define "askalike.engine" -}}
{{- if eq .Values.engine "chart" }}milvus://{{ include "askalike.name" . }}-milvus
{{- else }}{{ .Values.engine }}{{ end }}
{{- end }}

{{- define "askalike.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* By what pods are chosen: never changed, since a StatefulSet cannot change it. */}}
{{- define "askalike.selector" -}}
app.kubernetes.io/name: askalike
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- with .part }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end }}

{{- define "askalike.metadata" -}}
name: {{ include "askalike.name" .root }}{{ with .part }}-{{ . }}{{ end }}
labels:
  {{- include "askalike.selector" . | nindent 2 }}
  app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .root.Release.Service }}
  helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- /* What all pods of askalike's own image have in common. */}}
{{- define "askalike.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  {{- include "askalike.user" 10001 | nindent 2 }}
{{- end }}

{{- define "askalike.user" -}}
runAsNonRoot: true
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "askalike.container" -}}
image: {{ include "askalike.image" . }}
env:
  - {name: ASKALIKE_DATABASES, value: {{ include "askalike.database" . | quote }}}
  {{- if ne .Values.engine "local" }}
  - {name: ASKALIKE_ENGINES, value: {{ include "askalike.engine" . | quote }}}
  {{- end }}
  - {name: HOME, value: /tmp}
  - {name: XDG_CONFIG_HOME, value: /tmp}
envFrom:
  - secretRef: {name: {{ .Values.secrets.environment }}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- /* Makes or joins the forum in the database; the first start of each folder reads, and where it finds itself encodes, every question. */}}
{{- define "askalike.attach" -}}
- name: attach
  {{- include "askalike.container" .root | nindent 2 }}
  args:
    - attach
    - {{ include "askalike.database" .root | quote }}
    - --into=/forum/{{ .root.Values.forum }}
    - --language={{ .root.Values.language }}
    - --engine={{ include "askalike.engine" .root }}
  resources: {{- toYaml .resources | nindent 4 }}
  volumeMounts:
    - {name: data, mountPath: /forum}
    - {name: temporary, mountPath: /tmp}
{{- end }}

{{- define "askalike.claim" -}}
accessModes: [{{ .accessMode | default "ReadWriteOnce" }}]
{{- with .class }}
storageClassName: {{ . }}
{{- end }}
resources:
  requests: {storage: {{ .size }}}
{{- end }}

{{- /* A server that the chart brings for trying: one pod with a volume, and its service. */}}
{{- define "askalike.single" -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "askalike.metadata" . | nindent 2 }}
spec:
  selector:
    {{- include "askalike.selector" . | nindent 4 }}
  ports:
    - {name: {{ .part }}, port: {{ .port }}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  {{- include "askalike.metadata" . | nindent 2 }}
spec:
  serviceName: {{ include "askalike.name" .root }}-{{ .part }}
  replicas: 1
  selector:
    matchLabels:
      {{- include "askalike.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "askalike.selector" . | nindent 8 }}
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      securityContext:
        {{- if .user }}
        {{- include "askalike.user" .user | nindent 8 }}
        {{- else }}
        seccompProfile: {type: RuntimeDefault}
        {{- end }}
      containers:
        - name: {{ .part }}
          image: {{ .values.image }}
          {{- .container | nindent 10 }}
          ports:
            - {name: {{ .part }}, containerPort: {{ .port }}}
          securityContext:
            allowPrivilegeEscalation: false
            capabilities: {drop: [ALL]}
          resources: {{- toYaml .values.resources | nindent 12 }}
          volumeMounts:
            - {name: data, mountPath: {{ .mount | default "/data" }}}
  volumeClaimTemplates:
    - metadata:
        name: data
      spec:
        {{- include "askalike.claim" .values.storage | nindent 8 }}
{{- end }}
