"""`/auth/device`: a device without a browser gets a token (RFC 8628)."""

from urllib.parse import urlencode

from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.shown import NO_STORE, user_agent_of
from accounts.oauth import asked, devices
from accounts.oauth.bodies import DevicePoll, DeviceStart
from accounts.oauth.errors import InvalidGrant
from accounts.oauth.open import Open, field
from accounts.settings import get_settings
from accounts.shapes import DeviceCodes, DeviceGranted
from accounts.throttle import check_address
from kit.describe import ErrorBody


class DeviceCode(Open):
    """`/auth/device/code`"""

    @extend_schema(request=DeviceStart, responses={200: DeviceCodes, 429: ErrorBody})
    def post(self, request: Request) -> Response:
        """Codes for a device, and where its user types one."""
        check_address(request._request, "start")
        app_name = asked.read_app_name(field(request, "app_name"))
        machine_id = asked.read_machine_id(field(request, "machine_id"))
        both = devices.begin(app_name, machine_id)
        page = f"{get_settings().public_origin}{reverse('device')}"
        shown: DeviceCodes = {
            "device_code": both.device_code,
            "user_code": both.user_code,
            "verification_uri": page,
            "verification_uri_complete": f"{page}?{urlencode({'user_code': both.user_code})}",
            "expires_in": int(devices.LIFETIME.total_seconds()),
            "interval": devices.POLL_EVERY_S,
        }
        return Response(shown, headers=NO_STORE)


class DeviceToken(Open):
    """`/auth/device/token`"""

    @extend_schema(request=DevicePoll, responses={200: DeviceGranted, 429: ErrorBody})
    def post(self, request: Request) -> Response:
        """The app token, once the user has allowed it.

        Polling is paced by the grant; only guesses are counted.
        """
        try:
            minted = devices.poll(field(request, "device_code"), user_agent=user_agent_of(request))
        except InvalidGrant:
            check_address(request._request, "exchange")
            raise
        shown: DeviceGranted = {"access_token": minted.token, "token_type": "Bearer"}
        return Response(shown, headers=NO_STORE)
