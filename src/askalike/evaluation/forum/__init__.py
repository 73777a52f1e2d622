"""Test collections, a forum's own duplicate links among them, and the systems that answer them."""
