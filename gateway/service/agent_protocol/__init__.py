"""The Agent Protocol, a REST API of tasks, steps and artifacts, at `/ap/v1/agent` (docs/adr/0133)."""
