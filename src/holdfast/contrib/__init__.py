"""Integrations with other packages, each with its own extra.

`contrib.fastapi`, `contrib.starlette` and `contrib.flask` add a store to a web application, and
`contrib.django` to a Django project. `contrib.opentelemetry` traces the runs of tasks, and
`contrib.sentry` reports their exceptions.
"""
