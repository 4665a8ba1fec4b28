"""Groups, their members and links to join in the admin: the staff creates groups, and changes who is in them."""

from typing import Any, cast

from django import forms
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from accounts import groups
from accounts.admin_site import OwnerScopedAdmin
from accounts.errors import SignInRefused
from accounts.models import Group, Membership, User

Role = Membership.Role


class ServiceForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form whose check makes the change, in the view's transaction, so that a refusal is an error of the form.

    `changed_by`: the member of the staff who sends the form. `made`: the row, once it is changed.
    """

    changed_by: User
    made: Any = None

    def change(self, given: dict[str, Any]) -> Any:
        """Make the change; returns the row."""
        raise NotImplementedError

    def clean(self) -> dict[str, Any]:
        """Make the change, unless a field is wrong."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors:
            try:
                self.made = self.change(given)
            except SignInRefused as refused:
                self.add_error(None, f"{str(refused)[:1].upper()}{str(refused)[1:]}.")
        return given

    def save(self, commit: bool = True) -> Any:
        """The row, which is changed already."""
        self.save_m2m = lambda: None  # type: ignore[method-assign]
        return self.made

    def find_user(self, login: str) -> User:
        """The user of a login.

        Raises:
            accounts.groups.BadGroup: no user has the login.
        """
        user = User.objects.named(login.strip().removeprefix("@"))
        if user is None:
            raise groups.BadGroup("no user has this login")
        return user


class NewGroupForm(ServiceForm):
    slug = forms.CharField(max_length=39, label="short name", help_text="For addresses: data-platform.")
    maintainer = forms.CharField(max_length=64, help_text="The login of its first maintainer.")

    class Meta:
        model = Group
        fields = ("name",)

    def change(self, given: dict[str, Any]) -> Group:
        """Create the group."""
        return groups.create_group(given["slug"], given["name"], made_by=self.find_user(given["maintainer"]))


class RenameForm(ServiceForm):
    class Meta:
        model = Group
        fields = ("name", "claim_value")

    def change(self, given: dict[str, Any]) -> Group:
        """Rename the group, and set the value of the claim that makes members."""
        group = Group.objects.select_related("account").get(pk=self.instance.pk)
        if given["name"] != group.name:
            groups.rename_group(group, given["name"], by=self.changed_by)
        if given["claim_value"] != group.claim_value:
            groups.set_claim_value(group, given["claim_value"], by=self.changed_by)
        return group


class NewMemberForm(ServiceForm):
    slug = forms.CharField(max_length=39, label="group", help_text="Its short name.")
    login = forms.CharField(max_length=64, help_text="The user; of a member, the role changes.")

    class Meta:
        model = Membership
        fields = ("role",)

    def change(self, given: dict[str, Any]) -> Membership:
        """Add the user to the group."""
        group = Group.objects.filter(account__login__iexact=given["slug"].strip().removeprefix("@")).first()
        if group is None:
            raise groups.BadGroup("there is no such group")
        return groups.add_member(group, self.find_user(given["login"]), given["role"], by=self.changed_by)


class RoleForm(ServiceForm):
    class Meta:
        model = Membership
        fields = ("role",)

    def change(self, given: dict[str, Any]) -> Membership:
        """Change the role of the member."""
        member = self.instance
        return groups.change_role(member.group, member.user, given["role"], by=self.changed_by)


class StaffWrites(OwnerScopedAdmin):
    """A table that only the staff changes, by `ServiceForm`s: `add_form` and `form`."""

    add_form: type[ServiceForm]
    add_fields: tuple[str, ...]

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """The form class, with the member of the staff who sends the form."""
        form: Any = super().get_form(request, obj, change, **kwargs, **({} if obj else {"form": self.add_form}))
        form.changed_by = request.user
        return form

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """All columns of a row; of a new row those that the staff fills in."""
        return self.fields if obj else self.add_fields

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Do nothing: the form has changed the row."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """True for the staff."""
        return bool(request.user.is_staff)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """True for the staff."""
        return bool(request.user.is_staff)


class GroupAdmin(StaffWrites):
    """The groups of the hub, for the staff; members see their groups on `/groups`."""

    form, add_form = RenameForm, NewGroupForm
    add_fields = ("slug", "name", "maintainer")
    list_display = ("account", "name", "claim_value", "created_at")
    list_select_related = ("account",)
    search_fields = ("account__login", "name")
    ordering = ("account__login",)
    fields = ("account", "name", "claim_value", "created_at")
    readonly_fields = ("account", "created_at")


class MembershipAdmin(StaffWrites):
    """The roles of users in groups; each user sees their own, and the staff changes them."""

    form, add_form = RoleForm, NewMemberForm
    add_fields = ("slug", "login", "role")
    owner_lookup = "user"
    list_display = ("user", "group", "role", "added_by", "by_hand", "by_scim", "by_claim", "created_at")
    list_filter = ("role",)
    list_select_related = ("group__account", "user", "added_by")
    search_fields = ("user__login", "group__account__login")
    ordering = ("-created_at",)
    fields = ("group", "user", "role", "added_by", "by_hand", "by_scim", "by_claim", "created_at")
    readonly_fields = ("group", "user", "added_by", "by_hand", "by_scim", "by_claim", "created_at")

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """True for the staff."""
        return bool(request.user.is_staff)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """What a deletion deletes; the last maintainer of a group is protected."""
        *deleted, protected = super().get_deleted_objects(objs, request)
        last = [f"@{one.group.slug} would have no maintainer" for one in objs if groups.is_last_maintainer(one)]
        return (*deleted, [*protected, *last])

    def delete_model(self, request: HttpRequest, obj: Membership) -> None:
        """Remove the member."""
        try:
            groups.remove_member(obj.group, obj.user, by=cast(User, request.user))
        except SignInRefused as refused:  # another request made it the last maintainer meanwhile
            raise PermissionDenied(str(refused)) from None

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Membership]) -> None:
        """Remove these members."""
        for member in queryset.select_related("group__account", "user"):
            self.delete_model(request, member)


class GroupInvitationAdmin(OwnerScopedAdmin):
    """Links to join groups, for the staff; shows neither the link nor its hash."""

    list_display = ("group", "role", "made_by", "used_by", "created_at", "expires_at", "used_at")
    list_select_related = ("group", "made_by", "used_by")
    search_fields = ("group__account__login",)
    ordering = ("-created_at",)
    fields = ("group", "role", "made_by", "used_by", "created_at", "expires_at", "used_at")
