"""From a Job to its pods: what must be there before them, and the pods themselves."""

from collections.abc import Sequence
from typing import NamedTuple

from controller.job.conditions import Trouble
from controller.job.context import Context
from controller.job.objects import ObjectError
from controller.job.rules.pods import Manifest, pod, seated
from controller.job.rules.sync import Seat
from controller.job.rules.volumes import mount
from controller.plugins.base import Plugin, PluginError
from controller.plugins.registry import plugins_for
from controller.worker import Retry
from muster.api.batch import Job
from muster.api.core import Pod
from muster.api.scheduling import PodGroup
from muster.kube.errors import APIError


class Prepared(NamedTuple):
    """What is there of what pods need; with a trouble none is created."""

    plugins: Sequence[Plugin]
    group: PodGroup | None
    troubles: list[Trouble]

    @property
    def may_create(self) -> bool:
        """Whether pods may be created: everything is there, and the gang is admitted."""
        return not self.troubles and self.group is not None and self.group.status.phase not in {"", "Pending"}


class Seating:
    """Makes pods, and takes away what they needed. Every trouble is told in an event of the Job, and given back."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def prepare(self, job: Job, pods: Sequence[Pod]) -> Prepared:
        """Claims, objects of plugins, and the PodGroup, created or brought up to date; `pods` are the Job's."""
        plugins: Sequence[Plugin] = ()
        try:
            plugins = plugins_for(job.spec.plugins)
            self._context.objects.ensure(job, plugins)
            group = self._context.groups.ensure(job, pods)
        except PluginError as error:
            # Plugins of a Job cannot be changed: trying again would not help.
            trouble = Trouble("PluginError", str(error), passing=False)
        except ObjectError as error:
            trouble = Trouble(error.reason, str(error))
        except (Retry, APIError, ValueError) as error:
            trouble = Trouble("PodGroupError", str(error))
        else:
            return Prepared(plugins, group, [])
        return Prepared(plugins, self._context.groups.find(job), [self._told(job, trouble)])

    def create(self, job: Job, group: PodGroup, seats: Sequence[Seat], plugins: Sequence[Plugin]) -> list[Trouble]:
        """Creates the pods of these seats: pinned where the gang's placement has a node for them, else gated."""
        if not seats:
            return []
        try:
            placement = self._context.groups.placement(group)
            manifests = [seated(self._shaped(job, seat, plugins), seat, placement) for seat in seats]
        except PluginError as error:
            return [self._told(job, Trouble("PluginError", str(error), passing=False))]
        except APIError as error:
            why = f"the gang's placement cannot be read: {error}"
            return [self._told(job, Trouble("FailedCreate", why))]
        return [Trouble("FailedCreate", why) for why in self._context.effects.create_pods(job, manifests)]

    def delete_group(self, job: Job) -> list[Trouble]:
        """Deletes the PodGroup."""
        try:
            self._context.groups.delete(job)
        except APIError as error:
            return [self._told(job, Trouble("PodGroupError", f"the PodGroup cannot be deleted: {error}"))]
        return []

    def delete_objects(self, job: Job) -> list[Trouble]:
        """Deletes the objects of plugins."""
        try:
            self._context.objects.delete(job, plugins_for(job.spec.plugins))
        except PluginError:
            pass  # a plugin was uninstalled meanwhile; its objects go with the Job
        except APIError as error:
            return [self._told(job, Trouble("PluginError", f"objects of plugins cannot be deleted: {error}"))]
        return []

    @staticmethod
    def _shaped(job: Job, seat: Seat, plugins: Sequence[Plugin]) -> Manifest:
        manifest = pod(job, seat)
        mount(job, manifest)
        for plugin in plugins:
            plugin.shape(job, seat, manifest)
        return manifest

    def _told(self, job: Job, trouble: Trouble) -> Trouble:
        self._context.recorder.event(job, "Warning", trouble.reason, trouble.message)
        return trouble
