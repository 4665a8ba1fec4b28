"""Addresses of accounts: under /api/v1, and of pages."""

from django.urls import path
from django.views.generic import RedirectView

from accounts.api import account as account_api
from accounts.api import groups as groups_api
from accounts.api import sign_in as sign_in_api
from accounts.api import token_endpoint
from accounts.pages import account, consent, invitations, sign_in

urlpatterns = [
    path("me", account_api.Me.as_view(), name="me"),
    path("me/retention", account_api.Retention.as_view(), name="retention"),
    path("tokens", account_api.Tokens.as_view(), name="tokens"),
    path("tokens/channel", account_api.ChannelTokens.as_view(), name="channel-tokens"),
    path("tokens/<int:token_id>", account_api.OneToken.as_view(), name="token"),
    path("tokens/<int:token_id>/rotate", account_api.RotateToken.as_view(), name="rotate-token"),
    path("groups", groups_api.Groups.as_view(), name="groups-rest"),
    path("groups/<str:group_slug>", groups_api.OneGroup.as_view(), name="group-rest"),
    path("groups/<str:group_slug>/members", groups_api.Members.as_view(), name="group-members"),
    path("groups/<str:group_slug>/members/<str:login>", groups_api.OneMember.as_view(), name="group-member"),
    path("groups/<str:group_slug>/invitations", groups_api.GroupInvitations.as_view(), name="group-invitations"),
    path(
        "groups/<str:group_slug>/invitations/<int:invitation_id>",
        groups_api.OneGroupInvitation.as_view(),
        name="group-invitation",
    ),
    path("groups/<str:group_slug>/tokens", groups_api.GroupTokens.as_view(), name="group-tokens"),
    path("auth-sessions", account_api.AuthSessions.as_view(), name="auth-sessions"),
    path("auth-sessions/<str:prefix>/revoke", account_api.RevokeAuthSession.as_view(), name="revoke-auth-session"),
    path("auth/logout", account_api.Logout.as_view(), name="logout"),
    path("auth/apps/mint", account_api.MintApp.as_view(), name="mint-app"),
    path("auth/oauth/start", sign_in_api.OAuthStart.as_view(), name="oauth-start"),
    path("auth/oauth/callback", sign_in_api.OAuthCallback.as_view(), name="oauth-callback"),
    path("auth/oauth/token", token_endpoint.OAuthToken.as_view(), name="oauth-token"),
    path("auth/oidc/<int:number>/start", sign_in_api.OidcStart.as_view(), name="oidc-start"),
    path("auth/oidc/<int:number>/callback", sign_in_api.OidcCallback.as_view(), name="oidc-callback"),
    path("auth/spa/start", token_endpoint.SpaStart.as_view(), name="spa-start"),
    path("auth/spa/exchange", token_endpoint.SpaExchange.as_view(), name="spa-exchange"),
    path("auth/clients", token_endpoint.RegisterClient.as_view(), name="register-client"),
    path("auth/clients/token", token_endpoint.TokenOfClient.as_view(), name="client-token"),
    path("auth/device/code", token_endpoint.DeviceCode.as_view(), name="device-code"),
    path("auth/device/token", token_endpoint.DeviceToken.as_view(), name="device-token"),
]

page_urlpatterns = [
    path("signin", sign_in.signin, name="signin"),
    path("signin/password", sign_in.signin_password, name="signin-password"),
    path("signin/passkey", sign_in.signin_passkey, name="signin-passkey"),
    path("signin/passkey/options", sign_in.passkey_options, name="signin-passkey-options"),
    path("join/<str:token>", invitations.join, name="join"),
    path("invitations", invitations.invite, name="invitations"),
    path("invitations/<int:invitation_id>/revoke", invitations.revoke_invitation, name="invitation-revoke"),
    path("signout", sign_in.signout, name="signout"),
    path(".well-known/oauth-authorization-server", token_endpoint.metadata, name="authorization-server"),
    path("consent", consent.consent, name="consent"),
    path("device", consent.device, name="device"),
    path("account", account.account, name="account"),
    path("account/retention", account.retention, name="account-retention"),
    path("account/revoke/<int:credential_id>", account.revoke, name="account-revoke"),
    path("account/clients/<int:grant_id>/revoke", account.revoke_client, name="account-client-revoke"),
    path("account/rotate/<int:credential_id>", account.rotate, name="account-rotate"),
    path("admin", RedirectView.as_view(pattern_name="admin:index")),
]
