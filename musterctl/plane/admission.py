"""The files by which a kube-apiserver shows webhooks a client certificate (docs/install.md). Pure."""

from pathlib import Path
from typing import Any, Final

_PLUGINS: Final = ("MutatingAdmissionWebhook", "ValidatingAdmissionWebhook")


def control(kubeconfig: Path) -> dict[str, Any]:
    """Return the content of `--admission-control-config-file`: both kinds of webhooks are called as this file says."""
    group = "apiserver.config.k8s.io/v1"
    webhooks = {"apiVersion": group, "kind": "WebhookAdmissionConfiguration", "kubeConfigFile": str(kubeconfig)}
    plugins = [{"name": name, "configuration": webhooks} for name in _PLUGINS]
    return {"apiVersion": group, "kind": "AdmissionConfiguration", "plugins": plugins}


def callers(cert: Path, key: Path, host: str = "*") -> dict[str, Any]:
    """Return a kubeconfig whose user is named after the webhooks' host (`*`: any), and shows them this certificate."""
    user = {"client-certificate": str(cert), "client-key": str(key)}
    return {"apiVersion": "v1", "kind": "Config", "users": [{"name": host, "user": user}]}
