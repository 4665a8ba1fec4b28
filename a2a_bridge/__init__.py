"""The A2A surface: cards, JSON-RPC and SSE; dialects render one internal task."""
