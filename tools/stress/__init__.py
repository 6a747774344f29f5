"""Campaigns against the project itself: what it does with whatever may be thrown at it."""
