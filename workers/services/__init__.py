"""The three embedded services (Temporal, PostgreSQL, SeaweedFS S3) and the addresses of whichever serve.

`lifecycle.up`, `lifecycle.held` and `lifecycle.down` start and stop them, `addresses.resolve` says where they are, and
`report.status` what runs. One small supervisor process a home owns the servers: when it dies, so do they.

Linux only, since dying with the parent rests on the kernel's parent-death signal. Not here: backups, replicas, TLS;
whoever wants these gives external addresses by environment.
"""
