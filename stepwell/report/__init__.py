"""A run as a person sees it: a fold of its events into a picture, and the page that shows it."""
