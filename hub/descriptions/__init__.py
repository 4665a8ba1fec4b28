"""The hub described for programs and people: OpenAPI of its calls, AsyncAPI of its sockets, and a page of both."""
