"""A feed: a post fans out to everyone who follows, and leaderboards say what is popular."""

import holdfast

SOCIAL = {
    "follow": [{"targets": ["[author].followers"], "add": "reader"}],
    "post": [
        {"targets": ["[author].followers.feed"], "add": "text", "max_stored_values": 100},
        {"targets": ["['posts']", "[@day]"], "add": "text"},
        {"targets": ["['tags']"], "count_frequency": "tags"},
    ],
    "like": [
        {"targets": ["['liked']"], "count_frequency": "text"},
        {"targets": ["['fans']", "[author]"], "add": "reader"},
    ],
}


class Feed:
    """A feed: who follows whom, what they see, and what they like."""

    def __init__(self, store: holdfast.Store) -> None:
        self._events = store.events
        self._events.deploy(SOCIAL)

    def follow(self, reader: str, author: str) -> None:
        self._send("follow", author=author, reader=reader)

    def post(self, author: str, text: str, *tags: str) -> None:
        """Sends one event; the post is in all feeds when this returns."""
        self._send("post", author=author, text=text, tags=list(tags))

    def like(self, reader: str, author: str, text: str) -> None:
        self._send("like", author=author, text=text, reader=reader)

    def of(self, reader: str) -> list[str]:
        return [member.value for member in self._events.members(f"{reader}:feed").members]

    def most(self, board: str, count: int) -> list[str]:
        return [f"{entry.value} ({entry.count})" for entry in self._events.top(board, count)]

    def fans(self, author: str) -> int:
        return self._events.distinct(f"fans:{author}").count

    def _send(self, name: str, **attributes: str | list[str]) -> None:
        self._events.send({"name": name, "attributes": attributes})


def main() -> None:
    with holdfast.open("feed-data") as store:
        feed = Feed(store)
        for reader in ("bob", "cid", "dora"):
            feed.follow(reader, "ann")
        feed.follow("ann", "bob")

        feed.post("ann", "Tea is ready", "tea")
        feed.post("bob", "I bring cups", "tea", "cups")
        feed.post("ann", "Come in", "tea")

        for reader in ("cid", "dora", "bob"):
            feed.like(reader, "ann", "Tea is ready")
        feed.like("ann", "bob", "I bring cups")

        print("cid sees:", ", ".join(feed.of("cid")))
        print("ann sees:", ", ".join(feed.of("ann")))
        print("most used tags:", ", ".join(feed.most("tags", 2)))
        print("most liked:", ", ".join(feed.most("liked", 1)))
        print("ann has", feed.fans("ann"), "fans")


if __name__ == "__main__":
    main()
