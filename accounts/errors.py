"""The reasons for refusing a sign-in. `code` is public and never changes; nothing was issued."""

from kit.asgi import Header, RequestRefused, retry_after


class SignInRefused(RequestRefused):
    """A start, callback or exchange was refused; the text is for people."""

    status = 400
    code = "invalid_request"

    def __init__(self, message: str = "", *headers: Header) -> None:
        super().__init__(self.status, self.code, message, *headers)


class InvalidState(SignInRefused):
    """The callback is not the answer to a sign-in that this browser began."""

    code = "invalid_state"


class InvalidGrant(SignInRefused):
    """No such code for this client: unknown, foreign, expired, used, or with the wrong verifier."""

    code = "invalid_grant"


class InvalidClient(SignInRefused):
    """No registered client has that id."""

    code = "invalid_client"


class InvalidRedirect(SignInRefused):
    """A client registers an address that a browser is not sent to."""

    code = "invalid_redirect_uri"


class InvalidScope(SignInRefused):
    """A client wants none of the scopes that it may have."""

    code = "invalid_scope"


class InvalidTarget(SignInRefused):
    """A client wants a token for another server."""

    code = "invalid_target"


class UnsupportedGrant(SignInRefused):
    """A client wants a token for something else than a code."""

    code = "unsupported_grant_type"


class NotConfigured(SignInRefused):
    """The hub has no such way to sign in."""

    status = 503
    code = "oauth_not_configured"


class AccessDenied(SignInRefused):
    """The user said no."""

    code = "access_denied"


class ProviderRefused(SignInRefused):
    """An OpenID Connect provider does not accept the code it is said to have given."""

    code = "provider_refused"


class ProviderFailed(SignInRefused):
    """An OpenID Connect provider did not answer in time, or its ID token does not hold."""

    status = 502
    code = "provider_failed"


class GitHubRefused(SignInRefused):
    """GitHub does not accept the code it is said to have given."""

    code = "github_refused"


class GitHubFailed(SignInRefused):
    """GitHub did not answer in time, or not with sense."""

    status = 502
    code = "github_failed"


class SignupClosed(SignInRefused):
    """New people are not let in, or not this one."""

    status = 403
    code = "signup_closed"


class LoginTaken(SignInRefused):
    """A local account holds the login; an operator must settle whose it is."""

    status = 403
    code = "login_taken"


class Suspended(SignInRefused):
    """The account is suspended."""

    status = 403
    code = "suspended"


class AuthorizationPending(SignInRefused):
    """The user has not decided yet."""

    code = "authorization_pending"


class SlowDown(SignInRefused):
    """The device polls faster than it was told to."""

    code = "slow_down"


class ExpiredToken(SignInRefused):
    """The device code ran out."""

    code = "expired_token"


class TooFast(SignInRefused):
    """Too many of these from one address or user; `retry_in_s` says when to come back."""

    status = 429
    code = "rate_limited"

    def __init__(self, retry_in_s: int, what: str = "too many sign-ins or codes from here") -> None:
        text = f"{what}: come back in {retry_in_s} s"
        super().__init__(text, retry_after(retry_in_s))
        self.retry_in_s = retry_in_s
