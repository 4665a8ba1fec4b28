"""Addresses under /api/v1/admin."""

from django.urls import path

from agents.api.administration.listings import AdminAgents, AdminShares, AdminTokens
from agents.api.administration.overview import StatsOverview
from agents.api.administration.sessions import AdminSession, AdminSessions, AdminTimeline
from agents.api.administration.timeseries import StatsTimeseries
from agents.api.administration.users import AdminUsers, StatsActiveUsers
from agents.api.halts import AdminHalt, AdminHalts

urlpatterns = [
    path("stats/overview", StatsOverview.as_view(), name="admin-overview"),
    path("stats/timeseries/<str:metric>", StatsTimeseries.as_view(), name="admin-timeseries"),
    path("stats/users/active", StatsActiveUsers.as_view(), name="admin-active-users"),
    path("sessions", AdminSessions.as_view(), name="admin-sessions"),
    path("sessions/<uuid:public_id>", AdminSession.as_view(), name="admin-session"),
    path("sessions/<uuid:public_id>/timeline", AdminTimeline.as_view(), name="admin-timeline"),
    path("halts", AdminHalts.as_view(), name="admin-halts"),
    path("halts/<int:halt_id>", AdminHalt.as_view(), name="admin-halt"),
    path("shares", AdminShares.as_view(), name="admin-shares"),
    path("agents", AdminAgents.as_view(), name="admin-agents"),
    path("tokens", AdminTokens.as_view(), name="admin-tokens"),
    path("users", AdminUsers.as_view(), name="admin-users"),
]
