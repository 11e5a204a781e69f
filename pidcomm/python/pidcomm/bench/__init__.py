"""Measurements, checks, models and pictures of the library. The API never imports this package."""
