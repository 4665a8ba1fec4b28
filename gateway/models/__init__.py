"""Tables of the gateway."""

from gateway.models.agent_protocol import ProtocolArtifact, ProtocolStep, ProtocolTask

__all__ = ["ProtocolArtifact", "ProtocolStep", "ProtocolTask"]
