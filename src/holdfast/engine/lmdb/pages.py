"""Reads LMDB's file page by page without mapping it, so that damage is found and never fatal.

LMDB trusts its pages: one that was zeroed ends the process with an assertion, one beyond the end of
a truncated file with a bus error. This module reads the same pages with `pread`, follows every
pointer that LMDB would follow, and checks that each page is consistent.

The format is that of LMDB 0.9 on 64-bit machines, pages 0 and 1 are the meta pages:

page       number u64, -, flags u16, lower u16, upper u16, then the offsets of its nodes
           of an overflow page: the number of pages (u32) in place of lower and upper
meta       magic u32, version u32, address, map size, 2 trees (free pages, main), last page, txnid
tree       page bytes u32, flags u16, depth u16, branch, leaf and overflow pages, entries, root
node       of a leaf: data bytes (lo u16, hi u16), flags u16, key bytes u16, key, data
           of a branch: a page number (lo, hi, and the flags on top), key bytes u16, key

It knows nothing of the rest of Holdfast: `check` runs it as a program of its own, whose start takes
some milliseconds.
"""

import json
import os
import struct
import sys
from collections.abc import Iterator
from typing import Final, NamedTuple

MAGIC: Final = 0xBEEFC0DE
VERSION: Final = 1
_MAGIC_BYTES: Final = MAGIC.to_bytes(4, "little")
META_PAGES: Final = 2
FREE: Final = "the list of free pages"
MAIN: Final = "the main tree"
MAX_PROBLEMS: Final = 20  # that are reported: a damaged file may have millions

_HEADER: Final = 16
_NODE: Final = 8
_BRANCH, _LEAF, _OVERFLOW, _META = 0x01, 0x02, 0x04, 0x08
_KIND: Final = 0x7F
_BIG_DATA, _SUB_TREE = 0x01, 0x02
_INTEGER_KEYS: Final = 0x08
_FOREIGN_FLAGS: Final = 0x76  # flags of trees with several values for a key, or another order
_NO_PAGE: Final = 2**64 - 1
_MAX_DEPTH: Final = 32
_MAX_KEY_BYTES: Final = 511
_PAGE: Final = struct.Struct("<QHHHH")
_META_HEAD: Final = struct.Struct("<IIQQ")
_TREE: Final = struct.Struct("<IHHQQQQQ")
_META_END: Final = struct.Struct("<QQ")
_NODE_HEAD: Final = struct.Struct("<HHHH")
_META_BYTES: Final = _META_HEAD.size + 2 * _TREE.size + _META_END.size
_PAGE_SIZE_AT: Final = _HEADER + _META_HEAD.size  # the first number of the tree of free pages
_META_READ: Final = _HEADER + _META_BYTES
_MAX_ATTEMPTS: Final = 1_000  # at meta pages that keep changing


class Tree(NamedTuple):
    """LMDB's record of one of its trees."""

    page_bytes: int  # the page size of the file, in the tree of free pages only
    flags: int
    depth: int
    branch_pages: int
    leaf_pages: int
    overflow_pages: int
    entries: int
    root: int


class Meta(NamedTuple):
    """A meta page: the state of the file after one commit."""

    page_bytes: int
    free: Tree
    main: Tree
    last_page: int
    transaction_id: int

    @property
    def file_bytes(self) -> int:
        """The length of the file in this state, unless its last pages were never written."""
        return (self.last_page + 1) * self.page_bytes


class Damaged(Exception):
    """A page is not what it should be."""


class ForeignFile(Damaged):
    """The file was written by something else: another version of LMDB, or another program."""


def read_metas(file: int) -> list[Meta]:
    """Returns both meta pages, the newest first. Raises `Damaged` if one of them is invalid.

    Another process may commit between the two reads, or in the middle of one. So a fault counts
    only if a second look finds the same bytes.
    """
    seen = _meta_pages(file)
    for _ in range(_MAX_ATTEMPTS):
        try:
            return _parse_metas(file, *seen)
        except Damaged:
            again = _meta_pages(file)
            if again == seen:
                raise
            seen = again
    return _parse_metas(file, *seen)


def _meta_pages(file: int) -> tuple[bytes, bytes]:
    """Returns the start of meta page 0, and of page 1 if page 0 tells the page size."""
    first = os.pread(file, _META_READ, 0)
    if len(first) < _PAGE_SIZE_AT + 4:
        return first, b""
    page_bytes = int.from_bytes(first[_PAGE_SIZE_AT : _PAGE_SIZE_AT + 4], "little")
    return first, os.pread(file, _META_READ, page_bytes)


def _parse_metas(file: int, start: bytes, next_page: bytes) -> list[Meta]:
    if len(start) < _HEADER + _META_HEAD.size:
        raise Damaged("it ends before meta page 0")
    sizes = (1 << power for power in range(9, 17))
    if all(os.pread(file, 4, at + _HEADER) != _MAGIC_BYTES for at in (0, *sizes)):
        raise ForeignFile("it does not begin as one")
    first = _read_meta(start, 0)
    second = _read_meta(next_page, 1)
    if first.page_bytes != second.page_bytes:
        raise Damaged("its two meta pages name pages of different sizes")
    metas = sorted((first, second), key=lambda meta: -meta.transaction_id)
    numbers = [meta.transaction_id for meta in metas]
    # Commits alternate between the two: even numbers write the first, odd ones the second.
    in_turn = numbers[0] - numbers[1] == 1 and first.transaction_id % 2 == 0
    if not in_turn and numbers != [0, 0]:
        raise Damaged("the numbers of its two meta pages do not follow each other")
    # Only in the newest one: if the disk fails while LMDB writes a meta page, LMDB writes it again
    # with the number and the last page of the older commit, but with the trees of the new one.
    for tree in (metas[0].free, metas[0].main):
        _check_root(tree, metas[0], "the newest meta page")
    return metas


def _read_meta(page: bytes, number: int) -> Meta:
    where = f"meta page {number}"
    if len(page) < _HEADER + _META_BYTES:
        raise Damaged(f"it ends before {where}")
    own, _, flags, _, _ = _PAGE.unpack_from(page)
    magic, version, _, _ = _META_HEAD.unpack_from(page, _HEADER)
    if magic == MAGIC and version != VERSION and flags & _META:
        raise ForeignFile(f"it is of version {version} of LMDB")
    if not flags & _META or magic != MAGIC or own != number:
        raise Damaged(f"{where} is damaged")
    place = _HEADER + _META_HEAD.size
    free = Tree(*_TREE.unpack_from(page, place))
    main = Tree(*_TREE.unpack_from(page, place + _TREE.size))
    last_page, transaction_id = _META_END.unpack_from(page, place + 2 * _TREE.size)
    size = free.page_bytes
    if size & (size - 1) or not 512 <= size <= 65536 or not free.flags & _INTEGER_KEYS:
        raise Damaged(f"{where} names impossible pages")
    if last_page < META_PAGES - 1 or last_page >= 2**48:
        raise Damaged(f"{where} names an impossible last page")
    meta = Meta(size, free, main, last_page, transaction_id)
    for tree in (free, main):
        _check_tree(tree, where)
    return meta


def _check_tree(tree: Tree, where: str) -> None:
    if tree.flags & _FOREIGN_FLAGS:  # on which LMDB would end the process
        raise Damaged(f"{where} names a tree of another kind")
    is_empty = tree.root == _NO_PAGE
    if is_empty != (tree.depth == 0) or tree.depth > _MAX_DEPTH:
        raise Damaged(f"{where} names a tree of impossible depth")


def _check_root(tree: Tree, meta: Meta, where: str) -> None:
    if tree.root != _NO_PAGE and not META_PAGES <= tree.root <= meta.last_page:
        raise Damaged(f"{where} names a root that is not a page of the file")


class PageCheck:
    """A walk through all trees of one state of a file."""

    def __init__(self, file: int, meta: Meta) -> None:
        self.problems: list[str] = []
        self.entries: dict[str, int] = {}  # that were found, by the name of the tree
        self._file = file
        self._meta = meta
        self._size = meta.page_bytes
        # One byte for each page of the file: whether it was reached.
        self._used = bytearray(os.fstat(file).st_size // meta.page_bytes)
        self._counted = [0, 0, 0, 0]  # branch, leaf and overflow pages, entries of a tree

    def run(self, *, roots_only: bool = False) -> list[str]:
        """Walks all trees, or checks their roots only; returns a sentence for each problem."""
        lists = [] if roots_only else self._tree(self._meta.free, FREE, keeps=True)
        named = self._tree(self._meta.main, MAIN, keeps=True)
        if b"meta" not in dict(named):
            return self.problems  # the file of another program, which other code refuses
        for name, data in named:
            title = f"the tree {name.decode(errors='replace')!r}"
            try:
                if len(data) != _TREE.size:
                    raise Damaged(f"{MAIN} has something that is not a tree: {name!r:.100}")
                tree = Tree(*_TREE.unpack(data))
                if tree.flags:
                    raise Damaged(f"{title} has flags that no tree here has")
                _check_tree(tree, title)
                _check_root(tree, self._meta, title)
                if roots_only and tree.root != _NO_PAGE:
                    page = self._page(tree.root, _LEAF if tree.depth == 1 else _BRANCH)
                    list(self._nodes(page, tree.root, is_leaf=tree.depth == 1))
                elif not roots_only:
                    self._tree(tree, title)
            except Damaged as problem:
                self._report(str(problem))
        self._check_free(lists)
        return self.problems

    def _report(self, problem: str) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem)

    def _tree(self, tree: Tree, title: str, *, keeps: bool = False) -> list[tuple[bytes, bytes]]:
        """Walks one tree, and returns its pairs if it `keeps` them."""
        self._counted = [0, 0, 0, 0]
        kept: list[tuple[bytes, bytes]] = []
        if tree.root != _NO_PAGE:
            last: bytes | None = None
            for key, data in self._pages(tree.root, 1, tree.depth, title, keeps):
                if title != FREE and last is not None and key <= last:
                    self._report(f"{title}: the keys {last.hex()} and {key.hex()} are out of order")
                if keeps:
                    kept.append((key, data))
                last = key
        noted = [tree.branch_pages, tree.leaf_pages, tree.overflow_pages, tree.entries]
        if noted != self._counted and not self.problems:
            self._report(f"{title} notes {noted} pages and entries, and has {self._counted}")
        self.entries[title] = self._counted[3]
        return kept

    def _pages(
        self, number: int, level: int, depth: int, title: str, keeps: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yields the pairs below a page, in its order; reports and skips what can't be read."""
        try:
            page = self._page(number, _LEAF if level == depth else _BRANCH)
            nodes = list(self._nodes(page, number, is_leaf=level == depth))
        except Damaged as problem:
            self._report(f"{title}: {problem}")
            return
        if level == depth:
            self._counted[1] += 1
            self._counted[3] += len(nodes)
            for key, flags, begin, size in nodes:
                try:
                    yield key, self._data(page, number, flags, begin, size, keeps)
                except Damaged as problem:
                    self._report(f"{title}: {problem}")
            return
        self._counted[0] += 1
        for index, (key, child, _, _) in enumerate(nodes):
            first = True
            for pair in self._pages(child, level + 1, depth, title, keeps):
                # All keys below a branch's node are at least the node's own.
                if first and index and title != FREE and pair[0] < key:
                    self._report(f"{title}: page {number} leads to a smaller key than it says")
                first = False
                yield pair

    def _page(self, number: int, kind: int) -> bytes:
        if not META_PAGES <= number <= self._meta.last_page:
            raise Damaged(
                f"page {number} is referenced, but the last page is {self._meta.last_page}"
            )
        if number >= len(self._used):
            raise Damaged(f"page {number} is beyond the end of the file")
        if self._used[number]:
            raise Damaged(f"page {number} is reached twice")
        self._used[number] = 1
        page = os.pread(self._file, self._size, number * self._size)
        own, _, flags, _, _ = _PAGE.unpack_from(page)
        if own != number or flags & _KIND != kind:
            raise Damaged(
                f"page {number} is damaged: it says that it is page {own} of kind {flags}"
            )
        return page

    def _nodes(
        self, page: bytes, number: int, *, is_leaf: bool
    ) -> Iterator[tuple[bytes, int, int, int]]:
        """Yields the key of each node, its flags (for a branch: its page), and the position and
        length of its data."""
        _, _, _, lower, upper = _PAGE.unpack_from(page)
        if not _HEADER < lower <= upper <= self._size or lower % 2:
            raise Damaged(f"page {number} is damaged: its nodes can't be found")
        count = (lower - _HEADER) // 2
        total = 0
        for index, offset in enumerate(struct.unpack_from(f"<{count}H", page, _HEADER)):
            begin = offset + _NODE
            if offset < upper or begin > self._size:
                raise Damaged(f"page {number} is damaged: node {index} is outside of it")
            low, high, flags, key_bytes = _NODE_HEAD.unpack_from(page, offset)
            end = begin + key_bytes
            size = low | high << 16
            if is_leaf:
                if flags & ~(_BIG_DATA | _SUB_TREE) or not 0 < key_bytes <= _MAX_KEY_BYTES:
                    raise Damaged(f"page {number} is damaged: node {index} is impossible")
                within = end + (8 if flags & _BIG_DATA else size)
            else:
                flags, within = size | flags << 32, end
            if within > self._size:
                raise Damaged(f"page {number} is damaged: node {index} is longer than the page")
            total += within - offset + (within - offset) % 2
            yield page[begin:end], flags, end, size
        if total != self._size - upper:
            raise Damaged(f"page {number} is damaged: its nodes do not fill their part of it")

    def _data(
        self, page: bytes, number: int, flags: int, begin: int, size: int, keeps: bool
    ) -> bytes:
        if not flags & _BIG_DATA:
            return page[begin : begin + size] if keeps else b""
        (first,) = struct.unpack_from("<Q", page, begin)
        count = (_HEADER - 1 + size) // self._size + 1
        head = self._page(first, _OVERFLOW)
        (noted,) = struct.unpack_from("<I", head, 12)
        if noted < count:
            raise Damaged(f"page {first} begins {noted} pages, and page {number} names {count}")
        count = noted  # data that replaced larger data keeps all of its pages
        if first + count > min(self._meta.last_page + 1, len(self._used)):
            raise Damaged(
                f"the data that begins on page {first} extends beyond the end of the file"
            )
        if any(self._used[first + 1 : first + count]):
            raise Damaged(f"a page after page {first} is reached twice")
        self._used[first + 1 : first + count] = b"\1" * (count - 1)
        self._counted[2] += count
        return os.pread(self._file, size, first * self._size + _HEADER) if keeps else b""

    def _check_free(self, lists: list[tuple[bytes, bytes]]) -> None:
        """Checks that no page in use is listed as free: LMDB would overwrite it."""
        seen: set[int] = set()
        for key, data in lists:
            count = len(data) // 8
            numbers = struct.unpack_from(f"<{count}Q", data)
            if len(key) != 8 or not numbers or numbers[0] >= count:
                self._report("the list of free pages can't be read")
                return
            for page in numbers[1 : numbers[0] + 1]:
                is_used = page < len(self._used) and self._used[page]
                if is_used or page in seen or not META_PAGES <= page <= self._meta.last_page:
                    self._report(f"page {page} is listed as free, and is not")
                    return
                seen.add(page)


def problems_of(file: int, meta: Meta | None = None) -> list[str]:
    """Returns the problems of the newest state of a file, or of the state of `meta`."""
    try:
        return PageCheck(file, read_metas(file)[0] if meta is None else meta).run()
    except Damaged as problem:
        return [str(problem)]


def main() -> None:
    """`pages.py FILE [META]`: prints the problems as JSON; META is what `encode` has made."""
    file = os.open(sys.argv[1], os.O_RDONLY)
    meta = decode(sys.argv[2]) if len(sys.argv) > 2 else None
    json.dump(problems_of(file, meta), sys.stdout)


def encode(meta: Meta) -> str:
    """Returns a meta page as a command-line argument, because LMDB overwrites the page two commits
    later."""
    return json.dumps(meta)


def decode(text: str) -> Meta:
    size, free, main_tree, last_page, transaction_id = json.loads(text)
    return Meta(size, Tree(*free), Tree(*main_tree), last_page, transaction_id)


if __name__ == "__main__":
    main()
