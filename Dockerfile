# syntax=docker/dockerfile:1
# Two stages: everything is built from this checkout; what runs has the binary, our plugins, the C
# library and the public certificate authorities, and no shell.
#
#   docker build -t trimtab:0.1.0 .

FROM rust:1.95-bookworm AS build
WORKDIR /src
# Needs no Go: the control plane of `trimtab dev` is no part of the image.
RUN rustup target add wasm32-unknown-unknown
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    make build \
    && install -D target/bin/trimtab /out/trimtab \
    && install -D --mode=0644 --target-directory=/out/plugins target/plugins/*.wasm \
    && install --directory --mode=0750 --owner=65532 --group=65532 /out/state

# Debian 12, as the builder: the same C library.
FROM gcr.io/distroless/cc-debian12:nonroot
LABEL org.opencontainers.image.title="trimtab" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /out/trimtab /usr/local/bin/trimtab
# Beside the binary, for `trimtab plugin grant` in the image; a host serves what --plugins names.
COPY --from=build /out/plugins /usr/local/share/trimtab/plugins
COPY --from=build --chown=65532:65532 /out/state /var/lib/trimtab
# By number, so that runAsNonRoot can be checked.
USER 65532:65532
WORKDIR /var/lib/trimtab
# The root file system may be read-only: the host writes into --state alone.
ENTRYPOINT ["/usr/local/bin/trimtab"]
CMD ["--help"]
