#!/usr/bin/env bash
# Builds the image convoke:VERSION, and tries it: docker/build.sh [TAG]
#
# Uses docker, podman or buildah, whichever works first (BUILDER=… chooses). buildah needs no daemon and no privileges
# beyond root in a container: apt-get install buildah.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
tag=${1:-convoke:$version}
context=target/image
case "$(uname -m)" in
    x86_64) target=x86_64-unknown-linux-gnu ;;
    aarch64) target=aarch64-unknown-linux-gnu ;;
    *) echo "docker/build.sh: no target for $(uname -m)" >&2; exit 1 ;;
esac

builder=${BUILDER:-}
for candidate in docker podman buildah; do
    # docker may be there without its daemon.
    [ -n "$builder" ] || ! "$candidate" info >/dev/null 2>&1 || builder=$candidate
done
[ -n "$builder" ] || { echo "docker/build.sh: needs a working docker, podman or buildah (apt-get install buildah)" >&2; exit 1; }

# Static, so that it runs without any file of a distribution; glibc's own resolver reads /etc/hosts and asks DNS.
RUSTFLAGS="-C target-feature=+crt-static" cargo build --release --bin convoke --target "$target"

rm -rf "$context"
mkdir -p "$context/etc" "$context/data"
cp "target/$target/release/convoke" "$context/convoke"
strip "$context/convoke" 2>/dev/null || true
echo 'convoke:x:65532:65532:convoke:/var/lib/convoke:/sbin/nologin' >"$context/etc/passwd"
echo 'convoke:x:65532:' >"$context/etc/group"
echo 'hosts: files dns' >"$context/etc/nsswitch.conf"

if [ "$builder" = buildah ]; then
    buildah --storage-driver vfs build --isolation chroot --format docker -f docker/Dockerfile -t "$tag" "$context"
    container=$(buildah --storage-driver vfs from "$tag")
    trap 'buildah --storage-driver vfs rm "$container" >/dev/null' EXIT
    run() { buildah --storage-driver vfs run --isolation chroot --user 65532:65532 "$container" -- /convoke "$@"; }
else
    "$builder" build -f docker/Dockerfile -t "$tag" "$context"
    run() { "$builder" run --rm "$tag" "$@"; }
fi

run --version
run check --upstream kafka:9092 >/dev/null
# As far as the data directory of the image's own user goes; an address that no machine has then ends it.
nowhere=192.0.2.1:1
said=$(run run --upstream kafka:9092 --admin "$nowhere" 2>&1 || true)
case "$said" in
    *"cannot listen on $nowhere for admin"*) ;;
    *) echo "docker/build.sh: the image cannot be run: $said" >&2; exit 1 ;;
esac
echo "built $tag with $builder: $(du -h "$context/convoke" | cut -f1)"
