"""Captures and machines side by side: what differs, and whether times do by more than noise."""
