"""The check of a space: it finds what is wrong there, and not what is wrong on the way."""

import pytest

import holdfast
from holdfast.engine.valkey.address import parse
from holdfast.errors import StoreUnreachable
from holdfast.jobs import NewJob
from holdfast.limits import CHECKED_PER_STEP
from tests.engine.faulty_link import FaultyLink
from tests.servers import Servers


@pytest.mark.every_engine
def test_the_keys_of_a_space_are_counted_alone_or_beside_others(store: holdfast.Store) -> None:
    store.jobs.put("emails", id="welcome")
    alone = store.admin.count_keys()
    other = store.space("other")
    other.jobs.put("emails", id="welcome")

    assert alone is not None
    assert alone > 2
    assert store.admin.count_keys() == alone
    assert other.admin.count_keys() == alone
    assert sum(step.keys for step in store.admin.dump()) == alone


@pytest.mark.only_on("valkey")
def test_a_server_that_is_lost_in_the_middle_is_no_damage(servers: Servers) -> None:
    with servers.lending("valkey") as url, FaultyLink(parse(url).hosts[0][1]) as link:
        through = f"valkey://127.0.0.1:{link.port}?persistence=none&patience=0"
        with holdfast.open(through, durability="interval") as store:
            jobs = [NewJob(queue="emails", id=f"welcome {n}") for n in range(CHECKED_PER_STEP)]
            store.jobs.put_many(jobs)

            link.lose_messages(b"welcome")  # in what is asked for by name, after a page was read
            with pytest.raises(StoreUnreachable):
                store.admin.check()

            assert (link.lost, store.admin.check().problems) == (1, [])
