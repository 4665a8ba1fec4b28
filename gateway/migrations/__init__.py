"""Migrations of the tables of the gateway."""
