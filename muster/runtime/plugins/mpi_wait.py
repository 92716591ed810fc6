"""The launcher's wait: mpirun starts when ssh to every host answers.

Pods of a gang start together, but not at the same moment: their images take different times to pull, and their names
appear in DNS when they have an address. mpirun connects to each host once, and ends if one does not answer. So an init
container of the launcher tries until all of them do, in the launcher's image, which has ssh because mpirun needs it.
"""

from muster.runtime.info import Info, PodSet
from muster.runtime.plan import InitPlan
from muster.runtime.plugins.mpi_settings import HOSTFILE, SSH_ARGUMENTS, mount_path, wait_s
from muster.runtime.settings import MPI_WAIT, annotation

NAME = "wait-for-mpi-hosts"
_AT_ONCE = 32

# One try must not take long, and must not ask for a password; of each option ssh takes the first that it is given.
_SSH = f"ssh -o BatchMode=yes -o ConnectTimeout=5 -o ConnectionAttempts=1 {SSH_ARGUMENTS}"

SCRIPT = f"""\
reach() {{
  said=
  until answer=$({_SSH} "$1" true 2>&1 </dev/null); do
    if [ "$(date +%s)" -ge "$end" ]; then
      echo "$1 has not answered ssh for $MUSTER_WAIT_S s: $answer"
      return 1
    fi
    if [ -z "$said" ]; then echo "waiting until $1 answers ssh: $answer"; fi
    said=1
    sleep 1
  done
}}
if ! command -v ssh >/dev/null; then
  echo "this image has no ssh, by which mpirun starts processes; annotation {annotation(MPI_WAIT)}: \\"0\\" skips this"
  exit 1
fi
end=$(( $(date +%s) + MUSTER_WAIT_S ))
asked=0
running=
failed=0
while read -r host rest; do
  host=${{host%%:*}}
  if [ -z "$host" ] || [ "${{host%%.*}}" = "$MUSTER_LAUNCHER" ]; then continue; fi
  reach "$host" &
  running="$running $!"
  asked=$((asked + 1))
  if [ $((asked % {_AT_ONCE})) -eq 0 ]; then
    for each in $running; do wait "$each" || failed=1; done
    running=
  fi
done <{HOSTFILE}
for each in $running; do wait "$each" || failed=1; done
if [ "$failed" -ne 0 ]; then
  echo "mpirun is not started: look at the pods of these hosts, and whether they run sshd;" \\
    "annotation {annotation(MPI_WAIT)} says how many seconds to wait, 0 for not at all"
  exit 1
fi
echo "all $asked hosts answer ssh"
"""
"""For any POSIX shell. Kubernetes replaces `$(NAME)` of known variables only, and leaves the rest as it is."""


def waiter(info: Info, launcher: PodSet, plugin: str) -> InitPlan | None:
    """The init container of the launcher; None if there are no other hosts, or waiting is switched off."""
    timeout_s = wait_s(info.settings)
    others = sum(pod_set.count for pod_set in info.trainers if pod_set is not launcher)
    if launcher.role == "trainer":
        others += launcher.count - 1
    if not (timeout_s and others and launcher.target):
        return None
    return InitPlan(
        name=NAME,
        like=launcher.target.name,
        command=("sh", "-c", SCRIPT),
        env={"MUSTER_WAIT_S": str(timeout_s), "MUSTER_LAUNCHER": launcher.endpoints[0].partition(".")[0]},
        paths=(mount_path(info.settings), HOSTFILE.rpartition("/")[0]),
        plugin=plugin,
        reason=f"mpirun needs ssh to all pods of {info.workload}",
    )
