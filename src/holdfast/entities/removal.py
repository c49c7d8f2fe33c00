"""Removes expired entities, in bounded steps."""

from typing import Final

from holdfast.engine.contract import Transaction
from holdfast.entities.entity_writer import EXPIRY_KIND, EntityWriter
from holdfast.entities.index_builds import WORK_KIND, work_step
from holdfast.entities.selections import expired_range
from holdfast.entities.table_access import access_to
from holdfast.errors import InvalidTable
from holdfast.expiry import Remover
from holdfast.keys import pack_str, unpack
from holdfast.limits import REMOVED_PER_STEP


def remove_expired(tx: Transaction, subject: bytes) -> bool:
    """Removes what has expired in the table named by `subject`; True when nothing is left.

    Reads and writes as many keys as the removal of `REMOVED_PER_STEP` entities takes.
    """
    try:
        access = access_to(tx, subject.decode())
    except InvalidTable:
        return True
    writer = EntityWriter(tx, access)
    expired = list(tx.scan(*expired_range(access, writer.now_ms), limit=REMOVED_PER_STEP))
    for key, _ in expired:
        id = str(unpack(key, len(access.expiring))[1])
        id_part = pack_str(id)
        stored = tx.get(access.entities + id_part)
        if stored is not None:
            writer.remove(id, id_part, writer.access.read_kept(stored), op="expire")
    writer.finish()
    return len(expired) < REMOVED_PER_STEP


REMOVERS: Final[dict[str, Remover]] = {EXPIRY_KIND: remove_expired, WORK_KIND: work_step}
