"""The pages about the store itself: who may see them, and that each action has its effect."""

from html import escape
from pathlib import Path
from urllib.parse import quote

import pytest

import holdfast
from tests.dashboard.conftest import PASSWORD
from tests.dashboard.data_seeding import HOSTILE_TEXT
from tests.dashboard.visitor import Visitor
from tests.server.serving import Server, serving

PAGES = ("spaces", "spaces/default", "users", "backups", "check", "settings", "slow")


@pytest.mark.parametrize("page", PAGES)
def test_each_page_is_shown_to_an_admin_and_to_nobody_else(guarded: Server, page: str) -> None:
    root, guest = Visitor(guarded), Visitor(guarded)
    root.log_in("root", PASSWORD)
    guest.log_in("guest", PASSWORD)

    assert "</html>" in root.get(f"/ui/default/{page}")
    assert guest.read(f"/ui/default/{page}").status == 403
    assert f'/{page}"' not in guest.get("/ui/default/")


def test_a_space_is_looked_into_and_dropped_when_its_name_is_typed(
    server: Server, visitor: Visitor
) -> None:
    with holdfast.connect(f"holdfast://127.0.0.1:{server.resp_port}") as client:
        client.space("old").jobs.put(HOSTILE_TEXT, id="one")
        page = visitor.get("/ui/default/spaces/old?count=1")
        by_prefix = visitor.get("/ui/default/spaces/old?prefix=jobs")
        mistyped = visitor.post("/ui/default/spaces/old/drop", typed="new")
        said = visitor.do("/ui/default/spaces/old/drop", typed="old")

        assert escape("<script>alert(1)</script>") in page
        assert "<script>alert" not in page
        assert "jobs, " in by_prefix
        assert mistyped.status == 400
        assert "Dropped the space old" in said
        assert "old" not in client.admin.spaces().spaces
    assert visitor.read("/ui/default/spaces/old").status == 404


def test_a_check_runs_to_its_end_whether_or_not_someone_looks(
    server: Server, visitor: Visitor
) -> None:
    with holdfast.connect(f"holdfast://127.0.0.1:{server.resp_port}") as client:
        client.space("sound").jobs.put("emails", id="one")
    visitor.get("/ui/sound/check")

    visitor.do("/ui/sound/check", engine="on")
    page = visitor.get_until("/ui/sound/check", lambda page: "data-running" not in page)

    assert '<span class="tag good">sound</span>' in page
    assert ">0</strong> problems" in page
    assert "has not checked this space" in visitor.get("/ui/default/check")


def test_settings_say_where_each_came_from(server: Server, visitor: Visitor) -> None:
    page = visitor.get("/ui/default/settings")
    told = visitor.read("/ui/default/settings?format=csv").body.decode()

    assert "durability,interval,flag" in told
    assert "flux ttl,300,default" in told.replace("flux_ttl", "flux ttl")
    assert "open spaces" in page
    assert "durable at intervals" in page


def test_users_are_added_granted_renewed_and_removed_and_a_backup_is_made(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "--backups", str(tmp_path / "backups")) as server:
        visitor = Visitor(server)
        visitor.get("/ui/default/backups")
        visitor.do("/ui/default/backups", name="monday")
        made = visitor.get_until("/ui/default/backups", lambda page: "data-running" not in page)
        outside = visitor.post("/ui/default/backups", name="../monday")
        added = visitor.post("/ui/default/users", do="add", name="root", grants="admin")
        token = added.body.decode().split('data-copy-text="')[1].split('"')[0]
        root = Visitor(server)
        root.log_in("", token)

        root.get("/ui/default/users")
        root.post("/ui/default/users", do="add", name="ann", grants="read", password=PASSWORD)
        granted = root.do("/ui/default/users", do="grant", name="ann", grants="write:default")
        renewed = root.post("/ui/default/users", do="renew", name="ann").body.decode()
        removed = root.do("/ui/default/users", do="remove", name="ann")

        assert 'class="tag good">read back</span>' in made
        assert (tmp_path / "backups" / "monday").exists()
        assert outside.status == 400
        assert "write:default" in granted
        assert "shown only once" in renewed
        assert "write:default" not in removed
        assert PASSWORD not in granted
        url = f"holdfast://root:{quote(token)}@127.0.0.1:{server.resp_port}"
        with holdfast.connect(url) as client:
            assert [user.name for user in client.admin.users()] == ["root"]
