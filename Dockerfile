# Written plainly: `make container` runs these very lines where there is no container engine, too.
# The full image, for its C compiler (see docs/decisions/0024); nothing of it is shipped.
FROM python:3.13-bookworm@sha256:227b6570d6ee07061ae6ca2eb04dedfb6d2b34045835f343065b9869e4d427ea AS build
# Neither pip's version nor its cache belongs into what is shipped.
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
RUN python -m venv /opt/wireglot
# Each file by its hash; the fleet's drivers among them. Before the sources: these lines change seldom.
COPY requirements.lock ./
RUN /opt/wireglot/bin/pip install --require-hashes --only-binary :all: -r requirements.lock
COPY constraints.txt pyproject.toml README.md CHANGELOG.md LICENSE ./
COPY tools ./tools
COPY src ./src
RUN PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt /opt/wireglot/bin/pip install --no-deps .
RUN /opt/wireglot/bin/pip uninstall --yes pip

FROM python:3.13-slim-bookworm@sha256:67a1e1f215ccda113cfc024e8639049257e88f273898f595b61476d128d387e8
RUN groupadd --system --gid 8484 wireglot && useradd --system --uid 8484 --gid 8484 --no-create-home --home-dir /var/lib/wireglot --shell /usr/sbin/nologin wireglot
COPY --from=build /opt/wireglot /opt/wireglot
RUN install -d -o 8484 -g 8484 -m 0700 /var/lib/wireglot
# What it keeps (store, journal, secret) and what it needs for a moment (the workers' sockets) is in the one
# volume, so that everything else can be read-only.
ENV PATH=/opt/wireglot/bin:/usr/local/bin:/usr/bin:/bin \
    HOME=/var/lib/wireglot XDG_DATA_HOME=/var/lib XDG_CONFIG_HOME=/etc TMPDIR=/var/lib/wireglot \
    PYTHONDONTWRITEBYTECODE=1 \
    WIREGLOT_HOST=0.0.0.0 WIREGLOT_REQUIRE_KEY=true WIREGLOT_HOSTS=localhost WIREGLOT_LOG=json
USER 8484:8484
WORKDIR /var/lib/wireglot
VOLUME /var/lib/wireglot
EXPOSE 8484
# Streams are let finish for 300 seconds (limits.drain): give `docker stop` as long.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
    CMD ["python", "-I", "-c", "import http.client as h, os; c = h.HTTPConnection('127.0.0.1', int(os.environ.get('WIREGLOT_PORT', 8484)), timeout=2); c.request('GET', '/healthz'); raise SystemExit(c.getresponse().status != 200)"]
ENTRYPOINT ["wireglot"]
CMD ["serve"]
