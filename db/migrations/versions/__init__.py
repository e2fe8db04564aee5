"""One module a version of the database, oldest first. Those that were released are never edited."""
