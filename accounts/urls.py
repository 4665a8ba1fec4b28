"""Addresses under /api/v1."""

from django.urls import path

from accounts.api import sessions, tokens
from accounts.oauth import oidc_views, server, views

urlpatterns = [
    path("me", sessions.Me.as_view(), name="me"),
    path("me/retention", sessions.Retention.as_view(), name="retention"),
    path("tokens", tokens.Tokens.as_view(), name="tokens"),
    path("tokens/channel", tokens.ChannelTokens.as_view(), name="channel-tokens"),
    path("tokens/<int:token_id>", tokens.OneToken.as_view(), name="token"),
    path("tokens/<int:token_id>/rotate", tokens.RotateToken.as_view(), name="rotate-token"),
    path("auth-sessions", sessions.AuthSessions.as_view(), name="auth-sessions"),
    path("auth-sessions/<str:prefix>/revoke", sessions.RevokeAuthSession.as_view(), name="revoke-auth-session"),
    path("auth/logout", sessions.Logout.as_view(), name="logout"),
    path("auth/apps/mint", tokens.MintApp.as_view(), name="mint-app"),
    path("auth/oauth/start", views.OAuthStart.as_view(), name="oauth-start"),
    path("auth/oauth/callback", views.OAuthCallback.as_view(), name="oauth-callback"),
    path("auth/oauth/token", views.OAuthToken.as_view(), name="oauth-token"),
    path("auth/oidc/<int:number>/start", oidc_views.OidcStart.as_view(), name="oidc-start"),
    path("auth/oidc/<int:number>/callback", oidc_views.OidcCallback.as_view(), name="oidc-callback"),
    path("auth/spa/start", views.SpaStart.as_view(), name="spa-start"),
    path("auth/spa/exchange", views.SpaExchange.as_view(), name="spa-exchange"),
    path("auth/clients", server.RegisterClient.as_view(), name="register-client"),
    path("auth/clients/token", server.TokenOfClient.as_view(), name="client-token"),
    path("auth/device/code", views.DeviceCode.as_view(), name="device-code"),
    path("auth/device/token", views.DeviceToken.as_view(), name="device-token"),
]
