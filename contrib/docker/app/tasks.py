"""The tasks of the example: put your own here."""

from holdfast.tasks import Tasks

tasks = Tasks(queue="pictures")


@tasks.task
def shrink(width: int) -> int:
    return width // 2
