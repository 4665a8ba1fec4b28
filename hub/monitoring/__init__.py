"""The views of operators: health, figures for Prometheus, spans for OpenTelemetry."""
