"""Facts in Postgres, bytes under their digest in Postgres or S3."""
