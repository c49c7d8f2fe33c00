"""The command `holdfast`: one file for each of its commands.

A command's file is imported when the command is called, and what it needs of Holdfast only when it
runs: `holdfast --help` loads little more than click.

Exit codes are the same for all commands:

    0  done
    1  refused or failed; what went wrong is on standard error
    2  wrong usage, or an invalid setting
    3  done, and something was found to be wrong: damage, refused events, refused rows
"""

from typing import Final

from holdfast.cli.root_group import CommandEntry, Main

__all__ = ["main"]

COMMANDS: Final = {
    "backup": CommandEntry("backup", "Copy a store into a folder, and verify the copy."),
    "call": CommandEntry("call", "Call any operation with its arguments as JSON."),
    "check": CommandEntry("check", "Check a store and its indexes for damage."),
    "completion": CommandEntry("completion", "Print the completion script for a shell."),
    "config": CommandEntry("config", "Show which settings apply, and where they come from."),
    "copy": CommandEntry("copy", "Copy a whole store to another engine, and verify the copy."),
    "drill": CommandEntry("drill", "Prove that the newest backup can be restored."),
    "dump": CommandEntry("dump", "Write entities, rows or a whole space to a file."),
    "events": CommandEntry("events", "Deploy event schemas, send events, and query the results."),
    "gen": CommandEntry("gen", "Write source code for the tables of schema files."),
    "inspect": CommandEntry("inspect", "Show stored keys and what they hold."),
    "jobs": CommandEntry("jobs", "Put, list, find, retry, move and cancel jobs."),
    "load": CommandEntry("load", "Load a dump into a store."),
    "metrics": CommandEntry("metrics", "Read metrics: values, rates, series and rankings."),
    "recover": CommandEntry(
        "recover", "Report the damage in a store that does not open, and recover the rest."
    ),
    "restore": CommandEntry("restore", "Restore a store from a backup, and verify it."),
    "schema": CommandEntry("schema", "Check, plan and apply entity schemas."),
    "serve": CommandEntry("serve", "Serve a store over RESP and HTTP."),
    "space": CommandEntry("space", "List and drop spaces."),
    "status": CommandEntry("status", "Show a store at a glance."),
    "worker": CommandEntry("worker", "Run a worker that takes jobs and runs their tasks."),
    "user": CommandEntry("user", "Add, remove and list the users of a store."),
}

# Former names of commands, and what to call instead.
RENAMED: Final = {
    "entities": "mdzctl",
    "tables export": "holdfast dump",
    "tables import": "holdfast load",
    "tables": "holdfast dump",
    "export": "holdfast dump",
    "import": "holdfast load",
}

main: Final = Main(COMMANDS, RENAMED)
