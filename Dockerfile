# Muster's image: webhook, extender, controller and the command line. The chart determines which of them a container
# runs.
#
# `make image` builds it. BASE is a Debian image of Python 3.11, by digest, and the same in both stages: what was installed
# runs on what it was installed with. Nothing is compiled but bytecode, so that neither stage needs a compiler.
ARG BASE

FROM ${BASE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore PYTHONDONTWRITEBYTECODE=1
# The timestamp of all files: the time of the last commit, as set by `make image`, else the start of 1980.
ARG SOURCE_DATE_EPOCH=315532800
# requirements-tracing.lock adds what traces need.
ARG LOCK=requirements.lock
WORKDIR /source
COPY requirements.lock requirements-tracing.lock requirements-build.lock ./
# The environment has no pip of its own: the image's fills it. Bytecode is made at the end, with no times in it.
RUN python -m venv --without-pip /opt/muster \
 && python -m pip install --quiet --require-hashes --only-binary=:all: --requirement=requirements-build.lock \
 && python -m pip --python=/opt/muster/bin/python install --quiet --require-hashes --only-binary=:all: --no-compile --requirement="${LOCK}"
COPY pyproject.toml setup.py MANIFEST.in README.md LICENSE ./
COPY certs certs
COPY charts charts
COPY controller controller
COPY examples examples
COPY extender extender
COPY gangs gangs
COPY history history
COPY muster muster
COPY musterctl musterctl
COPY web web
COPY webhook webhook
RUN python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir=/wheel . \
 && python -m pip --python=/opt/muster/bin/python install --quiet --no-deps --no-compile /wheel/*.whl \
 && /opt/muster/bin/python -m compileall -q -f --invalidation-mode=unchecked-hash /opt/muster/lib \
 && find /opt/muster -exec touch --no-dereference --date="@${SOURCE_DATE_EPOCH}" {} +

FROM ${BASE}
ARG VERSION
LABEL org.opencontainers.image.title="muster" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="Apache-2.0"
# Whoever breaks in finds nothing to install with.
RUN python -m pip uninstall --quiet --yes --root-user-action=ignore wheel setuptools pip
COPY --from=build /opt/muster /opt/muster
# The root is read-only in the chart, and only /tmp is not; nothing is imported from where a process happens to stand.
ENV PATH=/opt/muster/bin:$PATH HOME=/tmp PYTHONDONTWRITEBYTECODE=1 PYTHONSAFEPATH=1 PYTHONUNBUFFERED=1
WORKDIR /opt/muster
# The user of the chart's pods; a number, so that the kubelet can see that it is not root.
USER 65532:65532
ENTRYPOINT ["muster"]
CMD ["--help"]
