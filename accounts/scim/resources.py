"""The resources that the hub has over SCIM, with the attributes that it keeps, and what it says about itself.

`scim2_models` reads and writes them, evaluates filters and applies patches (docs/adr/0210).
"""

from typing import Annotated, Any, ClassVar

from pydantic import Field
from scim2_models import (
    URN,
    AuthenticationScheme,
    Bulk,
    CaseExact,
    ChangePassword,
    ComplexAttribute,
    ETag,
    Filter,
    InvalidValueException,
    Mutability,
    Patch,
    Reference,
    Required,
    Resource,
    ScimPolicy,
    ScimProvider,
    ServiceProviderConfig,
    Sort,
    Uniqueness,
    User,
)

from accounts.models.scim import MAX_SCIM_CHARS

MAX_RESULTS = 200

# Identity providers send more attributes than the hub keeps, and Entra departs from RFC 7644 in two places.
POLICY = ScimPolicy(
    unknown=ScimPolicy.Unknown.ignore,
    remove_value_as_filter=ScimPolicy.RemoveValue.apply,
    unmatched_path_filter=ScimPolicy.UnmatchedPathFilter.create,
)


class DirectoryName(ComplexAttribute):
    """The parts of a name."""

    formatted: str | None = None
    family_name: str | None = None
    given_name: str | None = None
    middle_name: str | None = None
    honorific_prefix: str | None = None
    honorific_suffix: str | None = None


class DirectoryEmail(ComplexAttribute):
    """A mail address of a user. The hub stores any text: addresses of a company's own network are valid there."""

    value: str | None = None
    display: str | None = None
    type: str | None = Field(None, examples=["work", "home", "other"])
    primary: bool | None = None


class DirectoryUser(Resource[Any]):
    """A person. The core schema, with the attributes that the hub keeps."""

    __schema__ = URN("urn:ietf:params:scim:schemas:core:2.0:User")

    user_name: Annotated[str | None, Uniqueness.server, Required.true] = None
    name: DirectoryName | None = None
    display_name: str | None = None
    active: Annotated[bool | None, Required.true] = None  # a request without it gets the present value
    emails: list[DirectoryEmail] | None = None

    Name: ClassVar[type[ComplexAttribute]] = DirectoryName
    Emails: ClassVar[type[ComplexAttribute]] = DirectoryEmail


class DirectoryMember(ComplexAttribute):
    """A member of a group: a person that the identity provider has provided."""

    value: Annotated[str | None, Mutability.immutable, CaseExact.true] = None
    ref: Annotated[Reference[User[Any]] | None, Mutability.immutable] = Field(
        None, serialization_alias="$ref", validation_alias="$ref"
    )
    type: Annotated[str | None, Mutability.immutable] = Field(None, examples=["User"])


class DirectoryGroup(Resource[Any]):
    """A group. The core schema; members are persons."""

    __schema__ = URN("urn:ietf:params:scim:schemas:core:2.0:Group")

    display_name: Annotated[str | None, Uniqueness.server, Required.true] = None
    members: list[DirectoryMember] | None = None

    Members: ClassVar[type[ComplexAttribute]] = DirectoryMember


CONFIG = ServiceProviderConfig(
    patch=Patch(supported=True),
    bulk=Bulk(supported=False, max_operations=0, max_payload_size=0),
    filter=Filter(supported=True, max_results=MAX_RESULTS),
    change_password=ChangePassword(supported=False),
    sort=Sort(supported=True),
    etag=ETag(supported=False),
    authentication_schemes=[
        AuthenticationScheme(
            type=AuthenticationScheme.Type.oauthbearertoken,
            name="The SCIM token of the hub",
            description="The token that `manage.py scim_token` printed, as Authorization: Bearer.",
            spec_uri=Reference("https://www.rfc-editor.org/info/rfc6750"),
            primary=True,
        )
    ],
)
PROVIDER = ScimProvider(models=[DirectoryUser, DirectoryGroup], config=CONFIG, policy=POLICY)


def check_text(name: str, text: Any, *, needed: bool = True) -> str:
    """The value of an attribute; empty without one.

    Raises:
        InvalidValueException: it is longer than `MAX_SCIM_CHARS`, not printable, or missing though `needed`.
    """
    text = text or ""
    if len(text) > MAX_SCIM_CHARS or (text and not text.isprintable()) or (needed and not text.strip()):
        least = "1 to" if needed else "at most"
        raise InvalidValueException(detail=f"{name}: want {least} {MAX_SCIM_CHARS} printable characters")
    return str(text)
