"""Takes over the jobs of another queue that lives in a Redis: Qless, RQ or Celery."""
