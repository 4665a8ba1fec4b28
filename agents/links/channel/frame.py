"""What every frame of `/channel` has."""

from typing import Annotated

from msgspec import Meta, Struct

Name = Annotated[str, Meta(max_length=1024)]
Id = Annotated[str, Meta(min_length=1, max_length=128)]


class Frame(Struct, frozen=True, rename="camel", tag_field="type"):
    """Any frame; its class says its `type`."""
