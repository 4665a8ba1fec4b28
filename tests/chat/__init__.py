"""The surface of OpenAI's chat API, by its official client."""
