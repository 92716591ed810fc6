"""The command line of the webhook: what differs from pod to pod."""

from webhook.settings import Options, WebhookSettings, parse


def test_every_default() -> None:
    """Nothing has to be given."""
    assert parse([]) == Options(kubeconfig="", host="127.0.0.1", settings=WebhookSettings())


def test_every_flag() -> None:
    """Each flag sets the field of its name."""
    assert parse(["--kubeconfig=k", "--host=::"]) == Options(kubeconfig="k", host="::", settings=WebhookSettings())
