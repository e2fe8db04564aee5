"""Leaderboards as a page with plots."""

from stepwell.ptb.leaderboard.page.render import render_leaderboard

__all__ = ["render_leaderboard"]
