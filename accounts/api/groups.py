"""Groups over REST: one's groups, their members, links to join, and tokens. Others get 404."""

from functools import partial
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import groups
from accounts.api.account import NewToken
from accounts.group_invitations import invite_to_group, revoke_group_invitation
from accounts.models import Credential, Group, GroupInvitation, Membership, User
from accounts.models.group import MAX_NAME_CHARS
from accounts.paging import PageQuery, page
from accounts.rest import Body, HasUnlimitedToken, caller_of, check_no_fields
from accounts.shapes import (
    NO_STORE,
    ApiGroup,
    ApiGroupInvitation,
    ApiMember,
    MintedChannelToken,
    NewGroupInvitation,
    show_token,
    user_agent_of,
)
from accounts.tokens import mint_app, mint_channel
from kit.describe import ErrorBody, Items, Page
from kit.rows import show, show_each

Role = Membership.Role
ABSENT = "you are in no group of this name"
MINTS = {Credential.Kind.CHANNEL.value: mint_channel, Credential.Kind.APP.value: mint_app}


class GroupBody(Body):
    """The name of a group that people see."""

    name = serializers.CharField(max_length=MAX_NAME_CHARS)


class NewGroup(GroupBody):
    """The body that creates a group; `slug` is its login in addresses, and cannot be changed."""

    slug = serializers.CharField(max_length=39)


class RoleBody(Body):
    """The role of a user in the group."""

    role = serializers.ChoiceField(choices=Role.values, default=Role.MEMBER.value)


class NewGroupToken(NewToken):
    """The body that makes a token of the group: `channel` for an agent, `app` for a program."""

    kind = serializers.ChoiceField(choices=sorted(MINTS))


class GroupView(APIView):
    """A view of one group of the caller."""

    permission_classes = [IsAuthenticated, HasUnlimitedToken]

    def membership(self, request: Request, group_slug: str, *, maintains: bool = False) -> Membership:
        """The caller's membership in the group.

        Raises:
            NotFound: there is no such group, the caller is not in it, or does not maintain it.
        """
        rows = Membership.objects.filter(user=caller_of(request), group__account__login__iexact=group_slug)
        found = rows.select_related("group__account").first() if group_slug.isprintable() else None
        if found is None or (maintains and found.role != Role.MAINTAINER):
            raise NotFound(ABSENT)
        return found

    def maintained(self, request: Request, group_slug: str) -> Group:
        """The group, if the caller maintains it.

        Raises:
            NotFound: see `membership`.
        """
        return self.membership(request, group_slug, maintains=True).group


class Groups(APIView):
    """`/groups`"""

    @extend_schema(parameters=[PageQuery], responses=Page[ApiGroup])
    def get(self, request: Request) -> Response:
        """The groups of the caller, by slug."""
        own = Membership.objects.filter(user=caller_of(request)).select_related("group__account")
        return page(request, own.order_by("group__account__login"), show_each(ApiGroup))

    @extend_schema(request=NewGroup, responses={201: ApiGroup, 429: ErrorBody})
    def post(self, request: Request) -> Response:
        """Create a group; the caller is its first maintainer."""
        body = NewGroup.read(request).validated_data
        group = groups.create_group(body["slug"], body["name"], made_by=caller_of(request))
        return Response(show(ApiGroup, group.memberships.get(user=caller_of(request))), status=201)


class OneGroup(GroupView):
    """`/groups/{slug}`"""

    @extend_schema(responses=ApiGroup)
    def get(self, request: Request, group_slug: str) -> Response:
        """One group of the caller."""
        return Response(show(ApiGroup, self.membership(request, group_slug)))

    @extend_schema(request=GroupBody, responses=ApiGroup)
    def patch(self, request: Request, group_slug: str) -> Response:
        """Rename the group."""
        membership = self.membership(request, group_slug, maintains=True)
        name = GroupBody.read(request).validated_data["name"]
        groups.rename_group(membership.group, name, by=caller_of(request))
        return Response(show(ApiGroup, membership))


class Members(GroupView):
    """`/groups/{slug}/members`"""

    @extend_schema(parameters=[PageQuery], responses=Page[ApiMember])
    def get(self, request: Request, group_slug: str) -> Response:
        """The members of the group, by login."""
        group = self.membership(request, group_slug).group
        rows = group.memberships.select_related("user", "added_by").order_by("user__login")
        return page(request, rows, show_each(ApiMember))


class OneMember(GroupView):
    """`/groups/{slug}/members/{login}`"""

    @extend_schema(request=RoleBody, responses={200: ApiMember, 409: ErrorBody, 429: ErrorBody})
    def put(self, request: Request, group_slug: str, login: str) -> Response:
        """Add a user, or change a member's role; 409: no maintainer would be left, or a new one has not agreed."""
        group = self.maintained(request, group_slug)
        role = RoleBody.read(request).validated_data["role"]
        added = groups.add_member(group, _get_user(login), role, by=caller_of(request))
        return Response(show(ApiMember, added))

    @extend_schema(responses={204: None, 409: ErrorBody})
    def delete(self, request: Request, group_slug: str, login: str) -> Response:
        """Remove a member, or leave the group; 409: no maintainer would be left."""
        user = _get_user(login)
        is_self = user == caller_of(request)
        group = self.membership(request, group_slug, maintains=not is_self).group
        groups.remove_member(group, user, by=caller_of(request))
        return Response(status=204)


class GroupInvitations(GroupView):
    """`/groups/{slug}/invitations`"""

    @extend_schema(responses=Items[ApiGroupInvitation])
    def get(self, request: Request, group_slug: str) -> Response:
        """The open links to join the group, newest first."""
        group = self.maintained(request, group_slug)
        found = GroupInvitation.objects.open().filter(group=group).select_related("made_by").order_by("-pk")
        return Response({"items": show_each(ApiGroupInvitation)(found)})

    @extend_schema(request=RoleBody, responses={201: NewGroupInvitation, 429: ErrorBody})
    def post(self, request: Request, group_slug: str) -> Response:
        """Make a link by which one user joins the group, once, within 7 days; the answer alone has it."""
        group = self.maintained(request, group_slug)
        role = RoleBody.read(request).validated_data["role"]
        invited = invite_to_group(group, role, by=caller_of(request))
        shown = show(NewGroupInvitation, invited.invitation, url=invited.url)
        return Response(shown, status=201, headers=NO_STORE)


class OneGroupInvitation(GroupView):
    """`/groups/{slug}/invitations/{id}`"""

    @extend_schema(responses={204: None})
    def delete(self, request: Request, group_slug: str, invitation_id: int) -> Response:
        """Revoke an open link to join."""
        group = self.maintained(request, group_slug)
        check_no_fields(request)
        if not revoke_group_invitation(group, invitation_id, by=caller_of(request)):
            raise NotFound("no such open link")
        return Response(status=204)


class GroupTokens(GroupView):
    """`/groups/{slug}/tokens`"""

    @extend_schema(request=NewGroupToken, responses={201: MintedChannelToken, 429: ErrorBody})
    def post(self, request: Request, group_slug: str) -> Response:
        """Make a token of the group; it ends when the caller is no maintainer any more."""
        group = self.maintained(request, group_slug)
        body = NewGroupToken.read(request)
        wanted = body.validated_data
        make: Any = partial(
            MINTS[wanted["kind"]], name=wanted["name"], user_agent=user_agent_of(request), limits=body.limits()
        )
        minted = groups.mint_for_group(group, caller_of(request), make)
        shown = show_token(MintedChannelToken, minted.credential, token=minted.token)
        return Response(shown, status=201, headers=NO_STORE)


def _get_user(login: str) -> User:
    user = User.objects.named(login)
    if user is None:
        raise NotFound(f"no user has the login {login[:64]}")
    return user
