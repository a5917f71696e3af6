# One image for all five processes; docker-compose.yml says which one a container runs. docs/containers.md describes it.
ARG NODE_IMAGE=node:24.21.0-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /depute
# `npm run bundle` fetches the official validate.proto with pip.
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends python3 python3-pip && rm -rf /var/lib/apt/lists/*
COPY . .
RUN npm ci --no-audit --no-fund && npm run build
# cli/dist contains the third-party code that a server needs, except a native addon and its packages.
RUN node tools/copy-dependencies.ts cli/dist/package.json /outside

FROM ${NODE_IMAGE}
WORKDIR /depute
COPY --from=build /outside/node_modules node_modules
COPY --from=build /depute/cli/dist app
RUN mkdir /data && chown node:node /data
USER node
# A look-up of the name of a lost service can take 10 seconds, and Node.js looks up half as many names at once as it has threads.
# With the default of 4, a lost Redis would also delay new connections to Postgres.
ENV UV_THREADPOOL_SIZE=24
ENV NODE_ENV=production DEPUTE_DATA_DIR=/data DEPUTE_HOST=0.0.0.0 DEPUTE_AUTH=required
VOLUME /data
ENTRYPOINT ["node", "--max-semi-space-size=16", "app/src/main.js", "serve"]
