"""The extensions by which drf-spectacular reads this hub's views: shapes as answers, credentials, summaries, tags
and errors.
"""

from typing import Any

from drf_spectacular.contrib.pydantic import PydanticExtension
from drf_spectacular.extensions import OpenApiAuthenticationExtension, OpenApiSerializerExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ComponentIdentity, ComponentRegistry, ResolvedComponent
from rest_framework.permissions import IsAuthenticated

from accounts.rest import Body, JSONNegotiation
from hub.descriptions.schemas import REF, SCHEMES, Json, add_errors, is_shape, likely_errors, schema_of
from kit.describe import AGNT_KEY, CALLER, ErrorBody

# The extension would import pydantic, of which the hub has no model: 5 MB, and a third of the time of the text.
OpenApiSerializerExtension._registry.remove(PydanticExtension)


class ShapeSchema(OpenApiSerializerExtension):
    """A shape wherever a serializer may stand."""

    @classmethod
    def _matches(cls, target: Any) -> bool:
        return is_shape(target)

    def get_name(self, auto_schema: AutoSchema, direction: Any) -> str:
        """The name that msgspec gives the shape."""
        return str(schema_of(self.target)[0]["$ref"]).removeprefix(REF)

    def get_identity(self, auto_schema: AutoSchema, direction: Any) -> ComponentIdentity:
        """The identity of a shape: a second shape of the same name that differs causes a warning."""
        return ComponentIdentity(self.map_serializer(auto_schema, direction))

    def map_serializer(self, auto_schema: AutoSchema, direction: Any) -> Json:
        """The schema of the shape; schemas to which it refers are registered beside it."""
        own, components = self.get_name(auto_schema, direction), schema_of(self.target)[1]
        for name in components.keys() - {own}:
            register(auto_schema.registry, name, components[name])
        schema: Json = components[own]
        return schema


class CredentialScheme(OpenApiAuthenticationExtension):
    """A Bearer token, or the cookie."""

    target_class = "accounts.rest.CredentialAuthentication"
    name = list(CALLER)

    def get_security_requirement(self, auto_schema: AutoSchema) -> list[dict[str, list[Any]]]:
        """The two credentials, of which one is enough."""
        return [{name: []} for name in CALLER]

    def get_security_definition(self, auto_schema: AutoSchema) -> list[Json]:
        """The requirements of both credentials."""
        return [SCHEMES[name] for name in CALLER]


class KeyScheme(OpenApiAuthenticationExtension):
    """An AGNT key."""

    target_class = "agnt.endpoint.webhooks.KeyAuthentication"
    name = AGNT_KEY

    def get_security_definition(self, auto_schema: AutoSchema) -> Json:
        """The definition, which operations without a DRF view have too."""
        return SCHEMES[AGNT_KEY]


class HubAutoSchema(AutoSchema):
    """REST_FRAMEWORK's DEFAULT_SCHEMA_CLASS."""

    def get_operation(
        self, path: str, path_regex: str, path_prefix: str, method: str, registry: ComponentRegistry
    ) -> Json | None:
        """The operation, with the errors that follow from its form and from its view."""
        operation: Json | None = super().get_operation(path, path_regex, path_prefix, method, registry)
        if operation is None:
            return None
        if "security" in operation:
            operation["security"] = [{one: []} if isinstance(one, str) else one for one in operation["security"]]
        statuses = likely_errors(path, method, operation) | getattr(self.view, "further_errors", set())
        classes = set(self.view.permission_classes)
        if classes - {IsAuthenticated}:
            statuses.add(403)
        if self.view.content_negotiation_class is JSONNegotiation:
            statuses.add(406)
        schema, components = schema_of(ErrorBody)
        register(registry, "ErrorBody", components["ErrorBody"])
        add_errors(operation, statuses, schema)
        return operation

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> Json:
        schema: Json = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]
        return schema | {"additionalProperties": False} if isinstance(serializer, Body) else schema

    def get_operation_id(self) -> str:
        """The method and the view: getAgents, patchOneAgent."""
        return f"{self.method.lower()}{type(self.view).__name__}"

    def get_summary(self) -> str:
        """The first line of the docstring."""
        return super().get_description().partition("\n")[0].strip()

    def get_description(self) -> str:  # type: ignore[override]
        """The description without its first sentence."""
        return super().get_description().partition("\n")[2].strip()

    def get_tags(self) -> list[str]:
        """The tag of the view; without one the resource, which follows the version in the path."""
        if tag := getattr(self.view, "tag", ""):
            return [tag]
        parts = self.path.strip("/").split("/")
        return [parts[1] if parts[1] == "channel" else parts[2]]


def register(registry: ComponentRegistry, name: str, schema: Json) -> None:
    """Make a component known under its name."""
    identity = ComponentIdentity(schema)
    component = ResolvedComponent(name=name, type=ResolvedComponent.SCHEMA, schema=schema, object=identity)
    registry.register_on_missing(component)
