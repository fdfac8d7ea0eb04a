#!/usr/bin/env python3
"""Makes an OCI image of the program without a daemon: scripts/oci.py PROGRAM IMAGE.tar

The image holds the program, the shared libraries that it asks for, the certificates that the system trusts, and nothing else: no
shell, no package manager. Its user is nobody in particular (65532). Equal input gives equal bytes. The format is the OCI image layout
as a tar archive, which skopeo, podman, docker and containerd load.
"""

import gzip
import hashlib
import io
import json
import platform
import re
import subprocess
import sys
import tarfile
from pathlib import Path

USER = 65532
ROOTS = "/etc/ssl/certs/ca-certificates.crt"
PROCESSORS = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm"}
PASSWD = f"root:x:0:0:root:/:/none\nhvq:x:{USER}:{USER}:hvq:/data:/none\n"
GROUP = f"root:x:0:\nhvq:x:{USER}:\n"


def libraries(program):
    """The shared libraries of a program under the names that it asks for, with the loader; none for a static one."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True)
    return sorted(set(re.findall(r"(/\S+) \(0x", listed.stdout)))


def entry(archive, name, content=None, mode=0o644, owner=0):
    """Adds a file to an archive, or a folder where there is no content, always in the same form."""
    info = tarfile.TarInfo(name)
    info.mode, info.uid, info.gid = mode, owner, owner
    if content is None:
        info.type = tarfile.DIRTYPE
        archive.addfile(info)
    else:
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))


def layer(program):
    """The one layer of the image, as a tar archive."""
    files = {"usr/bin/hvq": (Path(program).read_bytes(), 0o755)}
    for library in libraries(program):
        files[library.lstrip("/")] = (Path(library).read_bytes(), 0o755)
    if Path(ROOTS).exists():
        files[ROOTS.lstrip("/")] = (Path(ROOTS).read_bytes(), 0o644)
    files["etc/passwd"], files["etc/group"] = (PASSWD.encode(), 0o644), (GROUP.encode(), 0o644)
    folders = {str(parent) for name in files for parent in Path(name).parents} - {"."}
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for folder in sorted(folders):
            entry(archive, folder, mode=0o755)
        entry(archive, "tmp", mode=0o1777)
        entry(archive, "data", mode=0o755, owner=USER)
        for name, (text, mode) in sorted(files.items()):
            entry(archive, name, text, mode)
    return content.getvalue()


def settings(digest, version):
    """What a container of the image begins with."""
    machine = platform.machine()
    return {
        "architecture": PROCESSORS.get(machine, machine),
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "WorkingDir": "/data",
            "Env": ["PATH=/usr/bin"],
            "Entrypoint": ["/usr/bin/hvq"],
            "Cmd": ["--help"],
            "StopSignal": "SIGTERM",
            "Labels": {
                "org.opencontainers.image.title": "hvq",
                "org.opencontainers.image.version": version,
                "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [digest]},
    }


def main():
    program, image = sys.argv[1:]
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    blobs = {}

    def blob(content, kind):
        digest = "sha256:" + hashlib.sha256(content).hexdigest()
        blobs[digest.replace(":", "/")] = content
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest, "size": len(content)}

    plain = layer(program)
    packed = blob(gzip.compress(plain, 9, mtime=0), "layer.v1.tar+gzip")
    config = settings("sha256:" + hashlib.sha256(plain).hexdigest(), version)
    config = blob(json.dumps(config, sort_keys=True).encode(), "config.v1+json")
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": [packed]}
    manifest = blob(json.dumps(manifest, sort_keys=True).encode(), "manifest.v1+json")
    manifest["annotations"] = {"org.opencontainers.image.ref.name": version}
    with tarfile.open(image, "w", format=tarfile.USTAR_FORMAT) as archive:
        entry(archive, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        entry(archive, "index.json", json.dumps({"schemaVersion": 2, "manifests": [manifest]}, sort_keys=True).encode())
        for name, content in sorted(blobs.items()):
            entry(archive, f"blobs/{name}", content)


main()
