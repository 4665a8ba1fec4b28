"""The manifests say what keeps a hub up while pods come and go."""

import re
import shutil
import subprocess

import pytest

from tests.deploy.files import DEPLOY, Json, document, documents

FOLDER = "kubernetes"
NAMES = document(f"{FOLDER}/kustomization.yaml")["resources"]
ALL = [one for name in NAMES for one in documents(f"{FOLDER}/{name}")]
PODS = {
    one["metadata"]["name"]: one["spec"]["template"]["spec"] for one in ALL if one["kind"] in ("Deployment", "Job")
}
DRAIN_S = 25


def the(kind: str, name: str = "web") -> Json:
    (one,) = [each for each in ALL if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return one


def container(name: str) -> Json:
    (one,) = PODS[name]["containers"]
    return one


def test_every_file_is_listed() -> None:
    assert sorted(path.name for path in (DEPLOY / FOLDER).glob("*.yaml")) == sorted([*NAMES, "kustomization.yaml"])
    assert set(PODS) == {"web", "worker", "beat", "migrate"}


@pytest.mark.parametrize("name", PODS)
def test_a_pod_has_no_rights_it_does_not_need(name: str) -> None:
    pod, security = PODS[name], container(name)["securityContext"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] >= 10000
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert security["allowPrivilegeEscalation"] is False
    assert security["readOnlyRootFilesystem"] is True
    assert security["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize("name", PODS)
def test_a_pod_says_what_it_needs_and_where_it_may_write(name: str) -> None:
    one = container(name)
    assert set(one["resources"]["requests"]) == {"cpu", "memory"}
    assert "memory" in one["resources"]["limits"]
    assert {mount["mountPath"] for mount in one["volumeMounts"]} == {"/data", "/tmp"}
    assert {mount["name"] for mount in one["volumeMounts"]} == {each["name"] for each in PODS[name]["volumes"]}
    assert one["image"] == "clawbridge"


def test_ready_is_what_serves_and_alive_is_what_answers() -> None:
    web = container("web")
    assert web["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert web["readinessProbe"]["timeoutSeconds"] >= 2  # it answers within one
    assert web["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert web["startupProbe"]["httpGet"]["path"] == "/livez"
    ports = {each["name"]: each["containerPort"] for each in web["ports"]}
    assert {web[f"{kind}Probe"]["httpGet"]["port"] for kind in ("readiness", "liveness", "startup")} <= set(ports)
    assert the("Service")["spec"]["ports"][0]["targetPort"] in ports


def test_a_web_pod_has_time_to_drain() -> None:
    config = the("ConfigMap", "clawbridge")["data"]
    assert config["DRAIN_S"] == str(DRAIN_S)
    pause = int(container("web")["lifecycle"]["preStop"]["exec"]["command"][1])
    assert PODS["web"]["terminationGracePeriodSeconds"] >= pause + DRAIN_S + 10
    rolling = the("Deployment")["spec"]["strategy"]["rollingUpdate"]
    assert rolling == {"maxUnavailable": 0, "maxSurge": 1}


def test_one_web_pod_always_stays_and_more_come_with_load() -> None:
    budget, scaler = the("PodDisruptionBudget")["spec"], the("HorizontalPodAutoscaler")["spec"]
    labels = the("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert budget["minAvailable"] == 1
    assert budget["selector"]["matchLabels"] == labels
    assert the("Deployment")["spec"]["selector"]["matchLabels"] == labels == the("Service")["spec"]["selector"]
    assert scaler["minReplicas"] >= 2
    assert "replicas" not in the("Deployment")["spec"]  # the autoscaler's to say
    assert scaler["behavior"]["scaleDown"]["stabilizationWindowSeconds"] >= 300


def test_there_is_one_beat_and_migrate_ends() -> None:
    assert the("Deployment", "beat")["spec"]["replicas"] == 1
    assert the("Deployment", "beat")["spec"]["strategy"] == {"type": "Recreate"}
    job = the("Job", "migrate")["spec"]
    assert job["template"]["spec"]["restartPolicy"] == "Never"
    assert job["activeDeadlineSeconds"] > 0


def test_the_ingress_holds_nothing_back() -> None:
    notes = {name.rpartition("/")[2]: one for name, one in the("Ingress")["metadata"]["annotations"].items()}
    assert notes["proxy-buffering"] == "off"
    assert int(notes["proxy-read-timeout"]) > 60
    assert notes["proxy-next-upstream"] == "error"
    assert re.fullmatch(r"1[1-9]m", notes["proxy-body-size"])


@pytest.mark.skipif(not shutil.which("kubectl"), reason="no kubectl")
def test_kubectl_puts_them_together() -> None:
    command = ["kubectl", "kustomize", str(DEPLOY / FOLDER)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\nkind: ") + done.stdout.startswith("kind: ") >= len(ALL)
