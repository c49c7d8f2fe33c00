"""A wiki: pages with revisions, found by author, and an edit that does not overwrite another's."""

from typing import Any

import holdfast

PAGES = {
    "table": "pages",
    "attributes": {
        "title": "string",
        "tid": "timeuuid",
        "body": "string",
        "author": "string",
        "edits": "int",
    },
    "index": [
        {"type": "hash", "attribute": "title"},
        {"type": "range", "attribute": "tid", "order": "desc"},
        {"type": "static", "attribute": "edits"},
    ],
    "secondaryIndexes": {
        "by_author": [
            {"type": "hash", "attribute": "author"},
            {"type": "proj", "attribute": "body"},
        ]
    },
    "revisionRetentionPolicy": {"type": "latest", "count": 3, "grace_ttl": 10},
}


class Wiki:
    """Pages in a store. Every save is a revision, and the newest three are kept."""

    def __init__(self, store: holdfast.Store) -> None:
        self._tables = store.tables
        self._tables.create(PAGES)

    def read(self, title: str) -> dict[str, Any]:
        """Returns the newest revision."""
        [page] = self._tables.get("pages", {"title": title}, limit=1).items
        return page

    def save(self, title: str, body: str, author: str, *, edits: int = 0) -> bool:
        """Adds a revision, unless the page has had more than `edits` edits meanwhile."""
        page = {"title": title, "body": body, "author": author, "edits": edits + 1}
        return self._tables.put("pages", page, if_={"edits": edits or None}).applied

    def history(self, title: str) -> list[str]:
        rows = self._tables.get("pages", {"title": title}, proj=["body", "author"]).items
        return [f"{row['author']}: {row['body']}" for row in rows]

    def pages_of(self, author: str) -> list[str]:
        """Returns the titles of the pages whose newest revision is this author's."""
        found = self._tables.get("pages", {"author": author}, index="by_author").items
        return [row["title"] for row in found]


def main() -> None:
    with holdfast.open("wiki-data") as store:
        wiki = Wiki(store)
        wiki.save("Tea", "Tea is a drink.", "ann")
        wiki.save("Cups", "A cup holds tea.", "ann")

        seen = wiki.read("Tea")["edits"]  # ann and ben open the page at the same time
        wiki.save("Tea", "Tea is a hot drink.", "ben", edits=seen)
        if not wiki.save("Tea", "Tea is a cold drink.", "ann", edits=seen):
            print("ann: someone was faster, look at their page first")

        print("newest:", wiki.read("Tea")["body"])
        for line in wiki.history("Tea"):
            print("revision of", line)
        print("pages of ann:", *wiki.pages_of("ann"))
        print("pages of ben:", *wiki.pages_of("ben"))


if __name__ == "__main__":
    main()
