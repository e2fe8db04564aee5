# One image for every kind of worker and for the command line: `docker run stepwell worker control`.
FROM python:3.11-slim

RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home stepwell \
    && install -d -o stepwell /opt/stepwell /var/lib/stepwell

USER stepwell
WORKDIR /opt/stepwell

# What changes least comes first: packages, then the sources.
COPY --chown=stepwell pyproject.toml constraints.txt README.md LICENSE ./
COPY --chown=stepwell scripts scripts
# Another build of torch, as pip takes it; empty for the CPU's.
ARG TORCH=""
RUN for package in workflows activities workers db stepwell cli; do install -D /dev/null $package/__init__.py; done \
    && TORCH="$TORCH" PIP_NO_CACHE_DIR=1 scripts/install-environment base
COPY --chown=stepwell . .

ENV PATH=/opt/stepwell/.venv/bin:$PATH STEPWELL_HOME=/var/lib/stepwell
VOLUME /var/lib/stepwell
ENTRYPOINT ["stepwell"]
