# Causeway with its locked environment. Build: docker build --tag causeway .
# Run in the folder of an analysis: docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD":/analysis causeway --cores all --configfile /analysis/config.yaml
FROM debian:trixie-slim

# Python 3.13, and what the wheel of pygraphviz expects of the system
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates python3 python3-venv libexpat1 libglib2.0-0t64 libx11-6 libxext6 libxrender1 \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m venv /opt/causeway
ENV PATH=/opt/causeway/bin:$PATH VIRTUAL_ENV=/opt/causeway PYTHONUNBUFFERED=1 NUMBA_CACHE_DIR=/tmp/numba XDG_CACHE_HOME=/tmp/cache
WORKDIR /causeway
COPY requirements-base.lock ./
RUN python -m pip install --quiet --no-cache-dir --require-hashes -r requirements-base.lock
COPY . .

# No root: a container that writes into a mounted folder of yours is started with `--user "$(id -u):$(id -g)"`.
RUN useradd --create-home --uid 1000 causeway && mkdir /analysis && chown causeway /analysis
USER causeway
# A user of yours has no name in here, and Snakemake asks for one.
ENV HOME=/tmp USER=causeway PYTHONDONTWRITEBYTECODE=1
WORKDIR /analysis
ENTRYPOINT ["snakemake", "--snakefile", "/causeway/Snakefile", "--directory", "/analysis"]
CMD ["--cores", "all"]
