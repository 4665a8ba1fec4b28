"""The surface of OpenAI's API: agents of the hub as models that any such client can ask (docs/adr/0117, 0129)."""
