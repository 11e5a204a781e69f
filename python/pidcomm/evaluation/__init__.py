"""Measuring, checking, modelling and drawing what the library does. The API never imports it."""
