"""Addresses of pages about oneself."""

from django.urls import path
from django.views.generic import RedirectView

from accounts import account_page, invitation_pages, pages
from accounts.oauth import pages as oauth_pages
from accounts.oauth import server

urlpatterns = [
    path("signin", pages.signin, name="signin"),
    path("signin/password", pages.signin_password, name="signin-password"),
    path("signin/passkey", pages.signin_passkey, name="signin-passkey"),
    path("signin/passkey/options", pages.passkey_options, name="signin-passkey-options"),
    path("join/<str:token>", invitation_pages.join, name="join"),
    path("invitations", invitation_pages.invite, name="invitations"),
    path("invitations/<int:invitation_id>/revoke", invitation_pages.revoke_invitation, name="invitation-revoke"),
    path("signout", pages.signout, name="signout"),
    path(".well-known/oauth-authorization-server", server.metadata, name="authorization-server"),
    path("consent", oauth_pages.consent, name="consent"),
    path("device", oauth_pages.device, name="device"),
    path("account", account_page.account, name="account"),
    path("account/retention", account_page.retention, name="account-retention"),
    path("account/revoke/<int:credential_id>", account_page.revoke, name="account-revoke"),
    path("account/clients/<int:grant_id>/revoke", account_page.revoke_client, name="account-client-revoke"),
    path("account/rotate/<int:credential_id>", account_page.rotate, name="account-rotate"),
    path("admin", RedirectView.as_view(pattern_name="admin:index")),
]
