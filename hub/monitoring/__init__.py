"""What operators watch: health, figures for Prometheus, spans for OpenTelemetry."""
