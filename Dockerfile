# One image for all five processes; docker-compose.yml says which one a container runs. docs/containers.md describes it.
ARG NODE_IMAGE=node:24.21.0-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /depute
# `npm run bundle` fetches the official validate.proto with pip.
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends python3 python3-pip && rm -rf /var/lib/apt/lists/*
COPY . .
RUN npm ci --no-audit --no-fund && npm run build
# Leaves the third-party packages that a server needs. The compiled workspaces are in cli/dist, and the image has its own Node.js.
RUN npm prune --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund \
 && find node_modules -type l -delete \
 && find node_modules \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) -type f -delete
# A workspace keeps the packages that it has in another version than the rest.
RUN for own in packages/*/node_modules services/*/node_modules gateway/node_modules; do \
      if [ -d "$own" ]; then cp -r "$own" "cli/dist/node_modules/@depute/$(basename "$(dirname "$own")")/"; fi; \
    done

FROM ${NODE_IMAGE}
WORKDIR /depute
COPY --from=build /depute/node_modules node_modules
COPY --from=build /depute/cli/dist app
RUN mkdir /data && chown node:node /data
USER node
ENV NODE_ENV=production DEPUTE_DATA_DIR=/data DEPUTE_HOST=0.0.0.0 DEPUTE_AUTH=required
VOLUME /data
ENTRYPOINT ["node", "--max-semi-space-size=16", "app/src/main.js", "serve"]
