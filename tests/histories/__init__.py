"""Histories of real workflows, which today's workflows must still replay."""
