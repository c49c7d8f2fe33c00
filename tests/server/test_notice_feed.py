"""How a server hears of commits that other processes make in its folder."""

import asyncio
import sys
from pathlib import Path

import holdfast
from holdfast.engine.contract import Notice
from holdfast.server.loop_turns import LoopTurns
from holdfast.server.notice_feed import NoticeFeed

PUBLISH_TWICE = """
import sys, holdfast
from holdfast.engine.contract import Notice
with holdfast.open(sys.argv[1]) as store:
    for topic in ("first", "second"):
        store.transact(lambda tx: tx.publish(Notice(topic, b"")))
"""


def test_notices_of_another_process_are_heard_in_the_order_of_its_commits(tmp_path: Path) -> None:
    async def main() -> list[str]:
        loop = asyncio.get_running_loop()
        topics: list[str] = []
        both = asyncio.Event()

        def hear(notice: Notice) -> None:
            topics.append(notice.topic)
            if len(topics) == 2:
                both.set()

        with holdfast.open(tmp_path) as store:
            feed = NoticeFeed(store.engine, loop, LoopTurns(loop))
            feed.listen(hear, space=store.prefix)
            command = (sys.executable, "-c", PUBLISH_TWICE, str(tmp_path))
            other = await asyncio.create_subprocess_exec(*command)
            await asyncio.wait_for(both.wait(), 60)
            await other.wait()
            feed.close()
        return topics

    assert asyncio.run(main()) == ["first", "second"]


def test_own_notices_are_made_only_while_someone_listens_to_their_topic(tmp_path: Path) -> None:
    async def main() -> list[str]:
        loop = asyncio.get_running_loop()
        heard: list[str] = []
        with holdfast.open(tmp_path, durability="interval") as store:
            feed = NoticeFeed(store.engine, loop, LoopTurns(loop))

            async def publish(payload: str) -> None:
                store.transact(lambda tx: tx.publish(Notice("topic", payload.encode())))
                feed.catch_up()
                await asyncio.sleep(0.0)

            await publish("before")
            leave = feed.listen(lambda notice: heard.append(notice.payload.decode()))
            await publish("while")
            leave()
            await publish("after")
            feed.listen(lambda notice: heard.append(notice.payload.decode()), topic_prefix="to")
            await publish("again")
            feed.close()
        return heard

    assert asyncio.run(main()) == ["while", "again"]
