"""The library: everything that knows neither Temporal nor Postgres."""
