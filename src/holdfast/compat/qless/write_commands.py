"""Qless commands that change something.

Arguments are checked in the order of the originals, before any effect.
"""

from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.compat.qless import replies
from holdfast.compat.qless.arguments import Arguments, array, json, json_text, number
from holdfast.compat.qless.arguments import name as word_as_name
from holdfast.compat.qless.read_commands import Reply
from holdfast.error_text import misfit
from holdfast.errors import BadArgument, UnknownJob
from holdfast.jobs import (
    cancellation,
    dependencies,
    failures,
    locks,
    pops,
    queues,
    recurring,
    results,
    settings,
    settlements,
    throttles,
    tracking,
    workers,
)
from holdfast.jobs.arguments import JsonText, check_jids, check_jobs_count, check_tags
from holdfast.jobs.puts import put as put_job
from holdfast.jobs.records import NewJob, RecurringRecord

if TYPE_CHECKING:
    from holdfast.jobs.ledger import Ledger

# --- putting and popping ------------------------------------------------------------------------


def put(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    caller = arguments.optional()
    if caller is None:
        raise BadArgument('Put(): Arg "worker" missing')
    return _put(ledger, now, arguments, caller, arguments.queue())


def put_without_caller(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    """Runs the `put` of the first unified script. It does not name its caller, so the worker that
    holds the job is always notified."""
    return _put(ledger, now, arguments, "", arguments.queue())


def requeue(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    caller = arguments.optional()
    if caller is None:
        raise BadArgument('Requeue(): Arg "worker" missing')
    queue = arguments.queue()
    jid = arguments.jid()
    if ledger.job(jid) is None:
        raise UnknownJob.of(jid)
    return _put(ledger, now, Arguments([jid, *arguments.rest()]), caller, queue)


def _put(ledger: "Ledger", now: float, arguments: Arguments, caller: str, queue: str) -> str:
    jid = arguments.required('Put(): Arg "jid" missing')
    klass = arguments.required('Put(): Arg "klass" missing')
    data = json_text(arguments.optional(), 'Put(): Arg "data" missing or not JSON: ')
    delay = arguments.number('Put(): Arg "delay" not a number: ')
    options = arguments.options()
    new = NewJob(
        queue=queue, id=jid, klass=klass, data=JsonText(data), delay=delay, **_put_options(options)
    )
    return put_job(ledger, new, caller, now)


def _put_options(options: dict[str, str]) -> dict[str, Any]:
    """Returns the options of put; names that it does not know are ignored."""
    found: dict[str, Any] = {}
    if "retries" in options:
        found["retries"] = number(options["retries"], 'Put(): Arg "retries" not a number: ')
    if "tags" in options:
        error = 'Put(): Arg "tags" not JSON '
        found["tags"] = tuple(array(options["tags"], error, str, int, float))
    if "priority" in options:
        found["priority"] = number(options["priority"], 'Put(): Arg "priority" not a number ')
    for name in ("depends", "throttles"):
        if name in options:
            found[name] = tuple(array(options[name], f'Put(): Arg "{name}" not JSON: ', str))
    for name in ("at", "expires", "timeout"):
        if name in options:
            found[name] = number(options[name], f'Put(): Arg "{name}" not a number: ')
    for name in ("batch", "rate-key"):
        if name in options:
            found[name.replace("-", "_")] = options[name]
    if "unique" in options:
        found["unique"] = options["unique"]
        found["unique_mode"] = options.get("unique-mode", "keep")
        states = options.get("unique-for", "running")
        found["unique_for"] = (
            states if states.isalpha() else number(states, 'Put(): Arg "unique-for" unknown: ')
        )
    return found


def mput(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    """Puts many jobs: `mput worker [{"queue", "jid", "klass", "data", ...}, ...]` with the options
    of put; returns their ids in order."""
    caller = arguments.optional() or ""
    error = 'Mput(): Arg "jobs" not JSON: '
    listed = array(arguments.required(error), error, dict)
    check_jobs_count(len(listed))
    return [put_job(ledger, new_job(each, "Mput", "jobs"), caller, now) for each in listed]


def new_job(given: Any, call: str, argument: str) -> NewJob:
    """Returns the job that a JSON object describes: `{"queue", "jid", "klass", "data", ...}`."""
    renamed = given
    if isinstance(given, dict):
        renamed = {name.replace("-", "_"): value for name, value in given.items()}
        if "jid" in renamed:
            renamed["id"] = renamed.pop("jid")
    try:
        return msgspec.convert(renamed, NewJob)
    except msgspec.ValidationError as error:
        raise BadArgument(
            f'{call}(): Arg "{argument}" not as expected: {misfit(error, "it")}'
        ) from None


def pop(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    queue = arguments.queue()
    worker = arguments.name("Pop", "worker")
    count = arguments.whole('Pop(): Arg "count" missing or not a number: ')
    return replies.text(replies.jobs(ledger, pops.pop(ledger, queue, worker, count, now)))


# --- settling -----------------------------------------------------------------------------------


def heartbeat(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    jid = arguments.jid()
    worker = arguments.name("Heartbeat", "worker")
    data = arguments.optional()
    text = None if data is None else json_text(data, 'Heartbeat(): Arg "data" not JSON: ')
    options = arguments.options()
    progress = None
    if "progress" in options:
        progress = number(options["progress"], 'Heartbeat(): Arg "progress" not a number: ')
        results.check_progress(progress)
    job = locks.heartbeat(ledger, jid, worker, text, now)
    if progress is not None:
        results.set_progress(ledger, job, progress, options.get("text", ""))
    return int(job.expires)


def complete(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    jid = arguments.jid()
    worker = arguments.name("Complete", "worker")
    queue = arguments.name("Complete", "queue")
    data = json_text(arguments.optional(), 'Complete(): Arg "data" missing or not JSON: ')
    options = arguments.options()
    delay = number(options.get("delay", "0"), 'Complete(): Arg "delay" not a number: ')
    error = 'Complete(): Arg "depends" not JSON: '
    depends = array(options.get("depends", "[]"), error, str)
    result = None
    if "result" in options:
        result = json_text(options["result"], 'Complete(): Arg "result" not JSON: ')
    result_ttl = None
    if "result-ttl" in options:
        error = 'Complete(): Arg "result-ttl" not a number: '
        result_ttl = number(options["result-ttl"], error)
    for name in ("delay", "depends"):
        if name in options and "next" not in options:
            raise BadArgument(f'Complete(): "{name}" cannot be used without a "next".')
    state, _ = settlements.complete(
        ledger,
        jid,
        worker,
        queue,
        data,
        now,
        next_queue=options.get("next"),
        delay=delay,
        depends=check_jids(depends),
        result=result,
        result_ttl=result_ttl,
    )
    return state


def fail(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    jid = arguments.jid()
    worker = arguments.name("Fail", "worker")
    group = arguments.name("Fail", "group")
    message = arguments.message()
    if message is None:
        raise BadArgument('Fail(): Arg "message" missing')
    data = arguments.optional()
    text = None if data is None else json_text(data, 'Fail(): Arg "data" not JSON: ')
    return settlements.fail(ledger, jid, worker, group, message, text, now)


def retry(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    jid = arguments.jid()
    queue = arguments.name("Retry", "queue")
    worker = arguments.name("Retry", "worker")
    delay = arguments.number('Retry(): Arg "delay" not a number: ', 0)
    group = arguments.optional()
    message = arguments.message()
    return settlements.retry(ledger, jid, queue, worker, delay, group, message, now)


def timeout(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    locks.timeout(ledger, arguments.jids(), now)
    return None


def unfail(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    queue = arguments.queue()
    group = arguments.name("Unfail", "group")
    count = arguments.whole('Unfail(): Arg "count" not a number: ', 25)
    check_jobs_count(count)
    return failures.unfail(ledger, queue, group, count, now)


def cancel(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    jids = arguments.jids()
    cancellation.cancel_jobs(ledger, jids, now)
    return jids


# --- changing -----------------------------------------------------------------------------------


def priority(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    jid = arguments.jid()
    value = arguments.number('Priority(): Arg "priority" missing or not a number: ')
    tracking.set_priority(ledger, jid, value)
    return int(value)


def log(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    jid = arguments.required("Log(): Argument 'jid' missing")
    message = arguments.message()
    if not message:
        raise BadArgument("Log(): Argument 'message' missing")
    word = arguments.optional()
    error = "Log(): Argument 'data' not a JSON object: "
    data = {} if word is None else json(word, error)
    if not isinstance(data, dict):
        raise BadArgument(f"{error}{word}")
    tracking.log(ledger, jid, message, data, now)
    return None


def depends(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    jid = arguments.jid()
    action = arguments.required('Depends(): Arg "command" missing')
    jids = arguments.jids()
    dependencies.blocked_job(ledger, jid)
    if action == "on":
        dependencies.depend_on(ledger, jid, list(dict.fromkeys(jids)))
    elif action == "off":
        dependencies.depend_off(ledger, jid, None if jids[:1] == ["all"] else jids, now)
    else:
        raise BadArgument('Depends(): Argument "command" must be "on" or "off"')
    return 1


def pause(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    for queue in [arguments.queue(), *arguments.rest()]:
        queues.set_paused(ledger, queue, True)
    return None


def unpause(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    for queue in [arguments.queue(), *arguments.rest()]:
        queues.set_paused(ledger, queue, False)
    return None


def queue_forget(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    for queue in [arguments.queue(), *arguments.rest()]:
        queues.forget_queue(ledger, queue)
    return None


def worker_deregister(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    first = arguments.required("Worker(): no worker name provided")
    workers.deregister(ledger, [first, *arguments.rest()])
    return None


def config_set(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    option = arguments.required('config.set(): Arg "option" missing')
    value = arguments.optional()
    if value is None:
        raise BadArgument('config.set(): Arg "value" missing')
    settings.set_option(ledger, option, value)
    return None


def config_unset(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    settings.unset_option(ledger, arguments.required('config.unset(): Arg "option" missing'))
    return None


def throttle_set(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    name = arguments.name("Throttle", "id")
    maximum = arguments.whole('Throttle(): Arg "max" missing or not a number: ')
    ttl = arguments.number('Throttle(): Arg "ttl" not a number: ', 0)
    throttles.set_throttle(ledger, name, maximum, ttl, now)
    return None


def throttle_delete(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    throttles.set_throttle(ledger, arguments.name("Throttle", "id"), 0, None, now)
    return None


# --- recurring ----------------------------------------------------------------------------------


def recur(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    queue = arguments.queue()
    jid = arguments.name("RecurringJob On", "jid")
    klass = arguments.name("RecurringJob On", "klass")
    word = arguments.optional()
    spec = arguments.name("RecurringJob On", "spec")
    data = json_text(word, 'RecurringJob On(): Arg "data" not JSON: ')
    record = RecurringRecord(jid=jid, klass=klass, queue=queue, data=data, next=now)
    if spec == "interval":
        record.interval = arguments.number('Recur(): Arg "interval" not a number: ')
        record.next = now + arguments.number('Recur(): Arg "offset" not a number: ')
    elif spec == "cron":
        record.cron = arguments.required('Recur(): Arg "cron" missing')
        record.tz = arguments.required('Recur(): Arg "tz" missing')
    else:
        raise BadArgument(f'Recur(): schedule type "{spec}" unknown')
    if spec == "interval" and record.interval <= 0:
        raise BadArgument('Recur(): Arg "interval" must be greater than 0')
    options = arguments.options()
    error = 'Recur(): Arg "tags" must be JSON string array: '
    tags = array(options.get("tags", "[]"), error, str, int, float)
    record.tags = check_tags(tags)
    for name in ("priority", "retries", "backlog"):
        error = f'Recur(): Arg "{name}" not a number: '
        setattr(record, name, number(options.get(name, "0"), error))
    return recurring.recur(ledger, record, now)


def unrecur(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    recurring.unrecur(ledger, arguments.jid("Recurring"))
    return 1


def recur_update(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    jid = arguments.jid("Recurring")
    recurring.require(ledger, jid)
    pairs = arguments.rest()
    changes: dict[str, Any] = {}
    for at in range(0, len(pairs), 2):
        key = pairs[at]
        if at + 1 == len(pairs):
            raise BadArgument(f"No value provided for {key}")
        changes[key] = _recur_change(key, pairs[at + 1])
    recurring.update(ledger, jid, changes, now)
    return 1


def _recur_change(key: str, value: str) -> Any:
    if key in ("priority", "interval", "retries"):
        return number(value, f'Recur(): Arg "{key}" must be a number: ')
    if key == "data":
        return json_text(value, 'Recur(): Arg "data" is not JSON-encoded: ')
    if key == "backlog":
        return number(value, 'Recur(): Arg "backlog" not a number: ')
    if key in ("klass", "queue"):
        return word_as_name(value, "Recur", key)
    raise BadArgument(f'Recur(): Unrecognized option "{key}"')


def recur_tag(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    jid = arguments.jid("Recurring")
    return replies.text(replies.listed(recurring.tag(ledger, jid, list(arguments.rest()))))


def recur_untag(ledger: "Ledger", now: float, arguments: Arguments) -> Reply:
    jid = arguments.jid("Recurring")
    return replies.text(replies.listed(recurring.untag(ledger, jid, list(arguments.rest()))))
