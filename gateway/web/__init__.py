"""Pages of a team on its owner's desk. The staff sees each team, and changes only its own."""

from django.http import Http404, HttpRequest

from accounts.models import User


def get_team_owner(request: HttpRequest, visitor: User) -> User:
    """The owner of the team that a page shows: the visitor, or for the staff the user that `?of=` names.

    Raises:
        Http404: there is no such user, or the visitor may not see the team.
    """
    login = request.GET.get("of", "")
    if not login or login == visitor.login:
        return visitor
    found = User.objects.filter(login__iexact=login[:64]).first() if visitor.is_staff else None
    if found is None:
        raise Http404
    return found
