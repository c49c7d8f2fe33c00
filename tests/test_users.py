"""Users, their grants and their secrets, on the store itself."""

import pytest

import holdfast
from holdfast.errors import BadInput, LastAdmin, UnknownUser, UserExists
from holdfast.limits import MAX_PASSWORD_BYTES, MAX_USER_NAME_BYTES
from holdfast.users import Grant, digest_of, users_of


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        "::",
        "write:",
        "write::",
        "write: ",
        "write:shop:",
        "write:shop: ",
        "write::jobs",
        "write:*:",
        ":shop",
        "owner",
        "WRITE",
        " write",
        "write:shop:job",
        "write:shop:*:",
    ],
)
def test_a_grant_with_an_empty_or_unknown_part_is_refused_and_shown(text: str) -> None:
    with pytest.raises(BadInput) as refused:
        Grant.parse(text)

    assert repr(text) in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("read", "read:*:*"),
        ("write:*", "write:*:*"),
        ("write:shop", "write:shop:*"),
        ("admin:*:jobs", "admin:*:jobs"),
        ("write:localhost:8080:*", "write:localhost:8080:*"),
    ],
)
def test_what_a_grant_leaves_out_is_everything(text: str, whole: str) -> None:
    assert str(Grant.parse(text)) == whole


def test_a_user_is_added_with_a_grant_or_not_at_all(store: holdfast.Store) -> None:
    for grants in ((), ["write:"], "admin", ["write", ""], [5]):
        with pytest.raises(BadInput):
            store.admin.add_user("web", grants)  # type: ignore[arg-type]  # that is the point

    assert store.admin.users() == []


@pytest.mark.parametrize(
    "name", ["", " ", "\t", "a:b", "a\nb", "\0", "x" * (MAX_USER_NAME_BYTES + 1)]
)
def test_a_name_that_no_protocol_could_carry_is_refused(store: holdfast.Store, name: str) -> None:
    with pytest.raises(BadInput, match="is not a valid user name"):
        store.admin.add_user(name, ["read"])


@pytest.mark.parametrize("password", ["", " ", "\n", "x" * (MAX_PASSWORD_BYTES + 1)])
def test_an_empty_or_endless_password_is_refused(store: holdfast.Store, password: str) -> None:
    with pytest.raises(BadInput, match="password"):
        store.admin.add_user("ann", ["read"], password=password)

    assert store.admin.users() == []


def test_a_user_is_replaced_only_on_request(store: holdfast.Store) -> None:
    store.admin.add_user("web", ["read:shop"])

    with pytest.raises(UserExists, match="read:shop"):
        store.admin.add_user("web", ["write"])
    before = store.admin.users()
    store.admin.add_user("web", ["write"], replace=True)

    assert [user.grants for user in before] == [["read:shop:*"]]
    assert [user.grants for user in store.admin.users()] == [["write:*:*"]]


def test_grants_change_and_the_secrets_stay(store: holdfast.Store) -> None:
    token = store.admin.add_user("web", ["read:shop"]).token

    changed = store.admin.grant_user("web", ["write:shop", "read:*:metrics"])

    assert changed.grants == ["write:shop:*", "read:*:metrics"]
    [user] = users_of(store.engine)
    assert user.token == digest_of(token or "")


def test_a_new_token_takes_the_place_of_the_old_one(store: holdfast.Store) -> None:
    first = store.admin.add_user("web", ["read"]).token

    second = store.admin.renew_token("web").token

    [user] = users_of(store.engine)
    assert first != second
    assert user.token == digest_of(second or "")


def test_a_user_with_a_password_may_have_a_token_too_until_it_is_revoked(
    store: holdfast.Store,
) -> None:
    store.admin.add_user("ann", ["read"], password="s3cret")
    store.admin.renew_token("ann")
    both = store.admin.users()
    revoked = store.admin.renew_token("ann", revoke=True)

    assert [user.login for user in both] == ["password and token"]
    assert revoked.token is None
    assert [user.login for user in store.admin.users()] == ["password"]


def test_an_unknown_user_gets_no_grant_and_no_token(store: holdfast.Store) -> None:
    with pytest.raises(UnknownUser):
        store.admin.grant_user("nobody", ["read"])
    with pytest.raises(UnknownUser):
        store.admin.renew_token("nobody")

    assert store.admin.users() == []


def test_the_last_admin_stays_one_where_users_are_changed_over_the_network(
    store: holdfast.Store,
) -> None:
    store.keeps_admin = True
    store.admin.add_user("root", ["admin"])
    store.admin.add_user("half", ["admin:shop"])

    with pytest.raises(LastAdmin):
        store.admin.remove_user("root")
    with pytest.raises(LastAdmin):
        store.admin.grant_user("root", ["write", "admin:shop"])
    with pytest.raises(LastAdmin):
        store.admin.add_user("root", ["read"], replace=True)
    store.admin.add_user("second", ["admin:*:admin"])

    assert store.admin.remove_user("root")
    assert [user.name for user in store.admin.users()] == ["half", "second"]


def test_the_last_user_can_be_removed_on_the_store_itself(store: holdfast.Store) -> None:
    store.admin.add_user("root", ["admin"])

    assert store.admin.remove_user("root")
    assert not store.admin.remove_user("root")


def test_the_last_way_in_is_not_taken_from_the_last_admin_over_the_network(
    store: holdfast.Store,
) -> None:
    store.keeps_admin = True
    store.admin.add_user("ann", ["admin"])

    with pytest.raises(LastAdmin):
        store.admin.renew_token("ann", revoke=True)

    store.admin.add_user("bob", ["admin"])
    assert store.admin.renew_token("ann", revoke=True).token is None
    with pytest.raises(LastAdmin):  # ann is an admin who can't log in
        store.admin.remove_user("bob")
