# One image for all five processes; docker-compose.yml says which one a container runs.
FROM node:24-slim AS build
WORKDIR /depute
COPY . .
RUN npm ci --no-audit --no-fund \
 && npm prune --omit=dev --ignore-scripts --no-audit --no-fund

FROM node:24-slim
WORKDIR /depute
COPY --from=build --chown=node:node /depute /depute
RUN mkdir /data && chown node:node /data
USER node
ENV DEPUTE_DATA_DIR=/data DEPUTE_HOST=0.0.0.0 DEPUTE_AUTH=required
VOLUME /data
ENTRYPOINT ["node", "--max-semi-space-size=16", "cli/src/main.ts", "serve"]
