"""The Helm chart renders to what deploy/kubernetes says, and its values reach the resources."""

import copy
import hashlib
import json
import re
import shutil
import subprocess
from typing import Any

import pytest
import yaml

from tests.deploy.files import DEPLOY, Json, document, documents

CHART = DEPLOY / "helm"
TEMPLATES = sorted((CHART / "templates").glob("*.yaml"))
HOST = "hub.example.org"
NAMED = {"app.kubernetes.io/name": "clawbridge"}  # what the kustomization adds to every resource


def values(**changes: Any) -> Json:
    return {**document("helm/values.yaml"), "host": HOST, **changes}


def look_up(path: str, given: Json) -> Any:
    found: Any = given
    for name in path.split("."):
        found = found[name]
    return found


def rendered(text: str, given: Json) -> str:
    """One template, by the few expressions that the chart uses; all others fail."""

    def value(match: re.Match[str]) -> str:
        found = look_up(match[1], given)
        assert found not in (None, ""), match[1]
        return str(found)

    def block(match: re.Match[str]) -> str:
        lines = yaml.safe_dump(look_up(match[1], given), sort_keys=False).splitlines()
        return "\n" + "\n".join(" " * int(match[2]) + line for line in lines)

    def digest(match: re.Match[str]) -> str:
        found = json.dumps(look_up(match[1], given), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(found.encode()).hexdigest()

    def condition(match: re.Match[str]) -> str:
        return match[2] if look_up(match[1], given) else ""

    text = re.sub(r"\{\{- if \.Values\.([\w.]+) \}\}(.*?)\{\{- end \}\}", condition, text, flags=re.DOTALL)
    text = re.sub(r"\s*\{\{- toYaml \.Values\.([\w.]+) \| nindent (\d+) \}\}", block, text)
    text = re.sub(r"\{\{ toJson \.Values\.([\w.]+) \| sha256sum \}\}", digest, text)
    text = re.sub(r"\{\{ (?:required \"[^\"]+\" )?\.Values\.([\w.]+) \}\}", value, text)
    text = text.replace("{{ .Release.Revision }}", "1")
    assert "{{" not in text, text
    return text


def resources(given: Json) -> dict[tuple[str, str], Json]:
    texts = [rendered(path.read_text(), given) for path in TEMPLATES]
    found = [one for text in texts for one in yaml.safe_load_all(text) if one]
    return by_name(found)


def by_name(found: list[Json]) -> dict[tuple[str, str], Json]:
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


def manifests() -> dict[tuple[str, str], Json]:
    """deploy/kubernetes as its kustomization makes it, without the namespace."""
    kustomization = document("kubernetes/kustomization.yaml")
    [image] = kustomization["images"]
    names = [name for name in kustomization["resources"] if name != "namespace.yaml"]
    found = copy.deepcopy([one for name in names for one in documents(f"kubernetes/{name}")])
    for one in found:
        one["metadata"]["labels"] = {**NAMED, **one["metadata"].get("labels", {})}
        for container in (
            one["spec"]["template"]["spec"]["containers"] if "template" in one.get("spec", {}) else ()
        ):
            container["image"] = f"{image['newName']}:{image['newTag']}"
    return by_name(found)


def test_the_chart_is_what_the_manifests_say() -> None:
    ours = resources(values())
    job = ours.pop(("Job", "migrate-1"))
    job["metadata"]["name"] = "migrate"
    ours["Job", "migrate"] = job
    for one in ours.values():
        if one["kind"] == "Deployment":
            annotations = one["spec"]["template"]["metadata"].pop("annotations")
            assert set(annotations) == {"clawbridge/host", "clawbridge/config"}
    assert ours == manifests()


def test_values_reach_the_resources() -> None:
    image = {"repository": "registry.example/hub", "tag": "1.2", "pullPolicy": "Always"}
    ours = resources(values(image=image, secretName="mine", config={"LOG_LEVEL": "INFO"}))
    [container] = ours["Deployment", "web"]["spec"]["template"]["spec"]["containers"]
    assert (container["image"], container["imagePullPolicy"]) == ("registry.example/hub:1.2", "Always")
    assert container["envFrom"][1] == {"secretRef": {"name": "mine"}}
    assert ours["ConfigMap", "clawbridge"]["data"] == {"PUBLIC_URL": f"https://{HOST}", "LOG_LEVEL": "INFO"}


def test_changed_settings_start_new_pods() -> None:
    before, after = (resources(values(config={"DRAIN_S": one})) for one in ("25", "20"))
    for name in ("web", "worker", "beat"):
        one, other = (found["Deployment", name]["spec"]["template"]["metadata"] for found in (before, after))
        assert one["annotations"] != other["annotations"]


def test_without_an_ingress_there_is_none() -> None:
    given = values()
    given["ingress"]["enabled"] = False
    assert ("Ingress", "web") not in resources(given)


def test_the_chart_is_of_this_release() -> None:
    chart, given = document("helm/Chart.yaml"), values()
    assert chart["apiVersion"] == "v2"
    assert chart["version"] == chart["appVersion"] == given["image"]["tag"]


@pytest.mark.skipif(not shutil.which("helm"), reason="no helm")
def test_helm_renders_it() -> None:
    command = ["helm", "template", "clawbridge", str(CHART), "--set", f"host={HOST}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert by_name([one for one in yaml.safe_load_all(done.stdout) if one]) == resources(values())
