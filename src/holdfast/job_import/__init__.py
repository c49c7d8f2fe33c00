"""Imports the jobs of another queue from its Redis: Qless, RQ or Celery."""
