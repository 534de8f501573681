# Causeway with its locked environment. Build: docker build --tag causeway .
# Run in the folder of an analysis: docker run --rm --volume "$PWD":/analysis causeway --cores all --configfile /analysis/config.yaml
FROM python:3.12-slim

ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 NUMBA_CACHE_DIR=/tmp/numba XDG_CACHE_HOME=/tmp/cache
WORKDIR /causeway
COPY requirements.lock ./
RUN python -m pip install --quiet --require-hashes -r requirements.lock
COPY . .

WORKDIR /analysis
ENTRYPOINT ["snakemake", "--snakefile", "/causeway/Snakefile", "--directory", "/analysis"]
CMD ["--cores", "all"]
