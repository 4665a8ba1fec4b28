"""Writes the list of components of a release (SBOM) in the JSON of CycloneDX: what the hub runs on and contains.

Equal locks make equal bytes.

    python -m deploy.components FOLDER
"""

import hashlib
import re
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from uuid import NAMESPACE_OID, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

from clawbridge import VERSION
from clawbridge.connect.packing import EPOCH
from deploy.packages import REQUIREMENTS, ROOT, LockedPackage, read_licences, read_lock

HUB = "clawbridge-hub"
NAME = f"{HUB}-{VERSION}.cdx.json"
SCHEMA = SchemaVersion.V1_6
SCOPES = {"base": ComponentScope.REQUIRED, "stripe": ComponentScope.OPTIONAL}  # by lock
VENDOR = ROOT / "static" / "js" / "vendor"
BUNDLED = re.compile(r"^=+\n(\S+) (\d\S*)\n=+$", re.MULTILINE)  # in the file of their licences


def describe() -> bytes:
    """The list of components."""
    hub = Component(type=ComponentType.APPLICATION, name=HUB, version=VERSION, bom_ref=HUB)
    licences = read_licences().by_package
    components = [*_packages(licences), *_scripts(licences)]
    found = Bom(
        components=components,
        metadata=BomMetaData(component=hub, timestamp=datetime(*EPOCH, tzinfo=UTC)),
        serial_number=uuid5(NAMESPACE_OID, repr([(one.bom_ref.value, one.hashes) for one in components])),
    )
    found.register_dependency(hub, components)
    return make_outputter(found, OutputFormat.JSON, SCHEMA).output_as_string(indent=2).encode() + b"\n"


def bundled_packages() -> list[tuple[str, str]]:
    """The packages of npm, with their versions, of which the script in `static/js/vendor` was built."""
    return BUNDLED.findall((VENDOR / "LICENSES").read_text())


def _packages(licences: Mapping[str, str]) -> Iterator[Component]:
    """The packages of the locks; one that two locks name has the scope of the first."""
    scopes: dict[LockedPackage, ComponentScope] = {}
    for lock, scope in SCOPES.items():
        for package in read_lock(REQUIREMENTS / f"{lock}.txt"):
            scopes.setdefault(package, scope)
    for package, scope in scopes.items():
        url = PackageURL("pypi", name=package.name, version=package.version)
        licence = licences[package.name]
        yield _component(url, licence, package.sha256, scope)


def _scripts(licences: Mapping[str, str]) -> Iterator[Component]:
    """The packages in the script of other authors that browsers get from the hub. The checksum is the script's."""
    [script] = VENDOR.glob("*.js")
    checksum = hashlib.sha256(script.read_bytes()).hexdigest()
    for name, version in bundled_packages():
        is_whole = script.name.startswith(f"{name}-{version}.")
        url = PackageURL("npm", name=name, version=version)
        licence = licences[f"npm:{name}"]
        yield _component(url, licence, (checksum,) if is_whole else (), ComponentScope.REQUIRED)


def _component(url: PackageURL, licence: str, checksums: tuple[str, ...], scope: ComponentScope) -> Component:
    return Component(
        name=url.name,
        version=url.version,
        bom_ref=url.to_string(),
        purl=url,
        scope=scope,
        licenses=[LicenseFactory().make_from_string(licence)],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=one) for one in checksums],
    )


def main() -> int:
    """Write the list into a folder."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: python -m deploy.components FOLDER\n")
        return 2
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / NAME).write_bytes(describe())
    return 0


if __name__ == "__main__":
    sys.exit(main())
