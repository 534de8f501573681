# Causeway with its locked environment. Build: docker build --tag causeway .
# Run in the folder of an analysis: docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD":/analysis causeway --cores all --configfile /analysis/config.yaml
FROM python:3.12-slim

ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 NUMBA_CACHE_DIR=/tmp/numba XDG_CACHE_HOME=/tmp/cache
# what the wheel of pygraphviz expects of the system
RUN apt-get update && apt-get install --yes --no-install-recommends libexpat1 libglib2.0-0 libx11-6 libxext6 libxrender1 \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /causeway
COPY requirements.lock ./
RUN python -m pip install --quiet --require-hashes -r requirements.lock
COPY . .

# No root: a container that writes into a mounted folder of yours is started with `--user "$(id -u):$(id -g)"`.
RUN useradd --create-home --uid 1000 causeway && mkdir /analysis && chown causeway /analysis
USER causeway
ENV HOME=/tmp PYTHONDONTWRITEBYTECODE=1
WORKDIR /analysis
ENTRYPOINT ["snakemake", "--snakefile", "/causeway/Snakefile", "--directory", "/analysis"]
CMD ["--cores", "all"]
