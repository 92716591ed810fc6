"""What containers that train get so that they can report their progress."""

from frameworks_world import component, mpi_runtime, replicated_job, runtime, train_job

from controller.trainjob.report import TrainerReports
from muster.runtime.registry import framework
from muster.runtime.train_job import compile_train_job

FRAMEWORK = framework(TrainerReports("https://muster:10443/", lambda: "PEM"))
PATH = "trainer.kubeflow.org/v1alpha1/namespaces/team/trainjobs/train/status"


def test_variables_token_and_certificate() -> None:
    """In the containers that train, and in no other; the token is for this TrainJob's status only."""
    on = runtime({"torch": {}}, replicated_job("node", "trainer"), replicated_job("other"))
    result = compile_train_job(train_job(), on, FRAMEWORK)
    node, other = component(result, "Job")["spec"]["tasks"]
    spec = node["template"]["spec"]
    env = {each["name"]: each.get("value") for each in spec["containers"][0]["env"]}
    assert env["KUBEFLOW_TRAINER_SERVER_URL"] == f"https://muster:10443/apis/{PATH}"
    assert env["KUBEFLOW_TRAINER_SERVER_CA_CERT"] == "/var/run/secrets/kubeflow/trainer/ca.crt"
    assert env["KUBEFLOW_TRAINER_SERVER_TOKEN"] == "/var/run/secrets/kubeflow/trainer/token"  # noqa: S105 - a path
    [volume] = spec["volumes"]
    token, ca = volume["projected"]["sources"]
    assert token["serviceAccountToken"] == {"audience": PATH, "expirationSeconds": 3600, "path": "token"}
    assert ca["configMap"]["name"] == "train-tls-config"
    assert spec["serviceAccountName"] == "default", "the API server wants to read whose token it is"
    assert component(result, "ConfigMap")["data"] == {"ca.crt": "PEM"}
    assert "volumes" not in other["template"]["spec"]


def test_the_account_of_the_runtime_stays() -> None:
    """A pod that has an account of its own reports with that one's token."""
    pod = {"serviceAccountName": "mine", "containers": [{"name": "node", "image": "image"}]}
    result = compile_train_job(train_job(), runtime({"torch": {}}, replicated_job("node", "trainer", pod)), FRAMEWORK)
    assert component(result, "Job")["spec"]["tasks"][0]["template"]["spec"]["serviceAccountName"] == "mine"


def test_launchers_report_too() -> None:
    """With MPI the user's program starts in the launcher."""
    result = compile_train_job(train_job(trainer={"numNodes": 2}), mpi_runtime(), FRAMEWORK)
    for task in component(result, "Job")["spec"]["tasks"]:
        names = {each["name"] for each in task["template"]["spec"]["containers"][0]["env"]}
        assert "KUBEFLOW_TRAINER_SERVER_URL" in names


def test_what_the_user_has_mounted_stays() -> None:
    """A volume of the same name, or a mount at the same path: the token gets another one, and the variables say so."""
    name, folder = "kubeflow-trainer-token", "/var/run/secrets/kubeflow/trainer"
    own = {"name": "node", "image": "image", "volumeMounts": [{"name": name, "mountPath": f"{folder}/"}]}
    pod = {"containers": [own], "volumes": [{"name": name, "emptyDir": {}}]}
    result = compile_train_job(train_job(), runtime({"torch": {}}, replicated_job("node", "trainer", pod)), FRAMEWORK)
    spec = component(result, "Job")["spec"]["tasks"][0]["template"]["spec"]
    [container] = spec["containers"]
    assert spec["volumes"][0] == {"name": name, "emptyDir": {}}
    assert container["volumeMounts"][0] == own["volumeMounts"][0]
    assert spec["volumes"][1]["name"] == container["volumeMounts"][1]["name"] == f"{name}-2"
    assert container["volumeMounts"][1]["mountPath"] == f"{folder}-2"
    env = {each["name"]: each.get("value") for each in container["env"]}
    assert env["KUBEFLOW_TRAINER_SERVER_TOKEN"] == f"{folder}-2/token"


def test_variables_of_the_user_stay() -> None:
    """Whoever reports to a server of their own."""
    given = train_job(trainer={"env": [{"name": "KUBEFLOW_TRAINER_SERVER_URL", "value": "mine"}]})
    result = compile_train_job(given, runtime({"torch": {}}), FRAMEWORK)
    [container] = component(result, "Job")["spec"]["tasks"][0]["template"]["spec"]["containers"]
    assert [each["value"] for each in container["env"] if each["name"].endswith("SERVER_URL")] == ["mine"]
