"""Stores that earlier versions wrote, which every later version must read."""
