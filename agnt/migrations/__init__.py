"""Migrations of the tables of AGNT."""
