# The service as an image. What installs and compiles stays in the first stage; the second has Python, the locked packages, the service
# and its compiled kernels, and runs as 10001 on a root that may be read-only. Plain syntax: any builder takes it.

FROM python:3.11-slim-bookworm AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build

COPY requirements.lock requirements-build.lock ./
RUN python -m venv --without-pip /opt/venv \
 && python -m pip --python /opt/venv/bin/python install --require-hashes --only-binary :all: -r requirements.lock \
 && python -m pip install --require-hashes --only-binary :all: --target /build/tools -r requirements-build.lock

COPY . .
RUN PYTHONPATH=/build/tools python -m pip --python /opt/venv/bin/python install \
      --no-index --no-deps --no-build-isolation --no-compile --target /opt/frugal . \
 && cp -R examples /opt/frugal/examples \
 && cp deploy/entrypoint /opt/frugal/bin/entrypoint \
 && chmod -R a+rX,go-w /opt/frugal && chmod 755 /opt/frugal/bin/* \
 && /opt/venv/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/frugal

# The CPU's name is fixed here and below: code for this machine's own CPU would be of no use on another.
WORKDIR /opt/frugal
RUN PYTHONPATH=/opt/frugal NUMBA_CPU_NAME=generic NUMBA_CACHE_DIR=/opt/frugal/kernels \
    /opt/venv/bin/python -c 'from frugal.service.warming import PARTS; print(PARTS.warm_up())' \
 && chmod -R a+rX /opt/frugal/kernels


FROM python:3.11-slim-bookworm
LABEL org.opencontainers.image.title="frugal" \
      org.opencontainers.image.description="Prediction where every fact about a case costs money, time or pain" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN python -m pip uninstall --yes --root-user-action=ignore pip setuptools wheel
COPY --from=build /opt/venv /opt/venv
COPY --from=build /opt/frugal /opt/frugal
ENV PATH=/opt/frugal/bin:/opt/venv/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONPATH=/opt/frugal PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    NUMBA_CPU_NAME=generic NUMBA_CACHE_DIR=/tmp/kernels HOME=/tmp
USER 10001:10001
WORKDIR /opt/frugal

# An image whose kernels would be compiled at start is not built.
RUN entrypoint python -c 'import sys; from frugal.service.warming import PARTS; print(said := PARTS.warm_up()); sys.exit(said.compiled)' \
 && rm -rf /tmp/kernels

EXPOSE 8000
HEALTHCHECK --interval=5s --timeout=5s --start-period=60s --retries=3 \
  CMD ["python", "-ISc", "import http.client as h, sys; c = h.HTTPConnection('127.0.0.1', 8000, timeout=4); c.request('GET', '/readyz'); sys.exit(c.getresponse().status != 200)"]
ENTRYPOINT ["entrypoint"]
CMD ["frugal", "serve", "--host", "0.0.0.0"]
