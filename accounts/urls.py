"""Addresses of accounts: under /api/v1, and of pages."""

from django.urls import path
from django.views.generic import RedirectView

from accounts import api, invitation_pages, pages
from accounts.oauth import pages as oauth_pages
from accounts.oauth import sign_in_views, token_views

urlpatterns = [
    path("me", api.Me.as_view(), name="me"),
    path("me/retention", api.Retention.as_view(), name="retention"),
    path("tokens", api.Tokens.as_view(), name="tokens"),
    path("tokens/channel", api.ChannelTokens.as_view(), name="channel-tokens"),
    path("tokens/<int:token_id>", api.OneToken.as_view(), name="token"),
    path("tokens/<int:token_id>/rotate", api.RotateToken.as_view(), name="rotate-token"),
    path("auth-sessions", api.AuthSessions.as_view(), name="auth-sessions"),
    path("auth-sessions/<str:prefix>/revoke", api.RevokeAuthSession.as_view(), name="revoke-auth-session"),
    path("auth/logout", api.Logout.as_view(), name="logout"),
    path("auth/apps/mint", api.MintApp.as_view(), name="mint-app"),
    path("auth/oauth/start", sign_in_views.OAuthStart.as_view(), name="oauth-start"),
    path("auth/oauth/callback", sign_in_views.OAuthCallback.as_view(), name="oauth-callback"),
    path("auth/oauth/token", token_views.OAuthToken.as_view(), name="oauth-token"),
    path("auth/oidc/<int:number>/start", sign_in_views.OidcStart.as_view(), name="oidc-start"),
    path("auth/oidc/<int:number>/callback", sign_in_views.OidcCallback.as_view(), name="oidc-callback"),
    path("auth/spa/start", token_views.SpaStart.as_view(), name="spa-start"),
    path("auth/spa/exchange", token_views.SpaExchange.as_view(), name="spa-exchange"),
    path("auth/clients", token_views.RegisterClient.as_view(), name="register-client"),
    path("auth/clients/token", token_views.TokenOfClient.as_view(), name="client-token"),
    path("auth/device/code", token_views.DeviceCode.as_view(), name="device-code"),
    path("auth/device/token", token_views.DeviceToken.as_view(), name="device-token"),
]


page_urlpatterns = [
    path("signin", pages.signin, name="signin"),
    path("signin/password", pages.signin_password, name="signin-password"),
    path("signin/passkey", pages.signin_passkey, name="signin-passkey"),
    path("signin/passkey/options", pages.passkey_options, name="signin-passkey-options"),
    path("join/<str:token>", invitation_pages.join, name="join"),
    path("invitations", invitation_pages.invite, name="invitations"),
    path("invitations/<int:invitation_id>/revoke", invitation_pages.revoke_invitation, name="invitation-revoke"),
    path("signout", pages.signout, name="signout"),
    path(".well-known/oauth-authorization-server", token_views.metadata, name="authorization-server"),
    path("consent", oauth_pages.consent, name="consent"),
    path("device", oauth_pages.device, name="device"),
    path("account", pages.account, name="account"),
    path("account/retention", pages.retention, name="account-retention"),
    path("account/revoke/<int:credential_id>", pages.revoke, name="account-revoke"),
    path("account/clients/<int:grant_id>/revoke", pages.revoke_client, name="account-client-revoke"),
    path("account/rotate/<int:credential_id>", pages.rotate, name="account-rotate"),
    path("admin", RedirectView.as_view(pattern_name="admin:index")),
]
