reach() {
  said=
  until answer=$(@SSH@ "$1" true 2>&1 </dev/null); do
    if [ "$(date +%s)" -ge "$end" ]; then
      echo "$1 has not answered ssh for $MUSTER_WAIT_S s: $answer"
      return 1
    fi
    if [ -z "$said" ]; then echo "waiting until $1 answers ssh: $answer"; fi
    said=1
    sleep 1
  done
}
if ! command -v ssh >/dev/null; then
  echo "this image has no ssh, by which mpirun starts processes; annotation @ANNOTATION@: \"0\" skips this"
  exit 1
fi
end=$(( $(date +%s) + MUSTER_WAIT_S ))
asked=0
running=
failed=0
while read -r host rest; do
  host=${host%%:*}
  if [ -z "$host" ] || [ "${host%%.*}" = "$MUSTER_LAUNCHER" ]; then continue; fi
  reach "$host" &
  running="$running $!"
  asked=$((asked + 1))
  if [ $((asked % @AT_ONCE@)) -eq 0 ]; then
    for each in $running; do wait "$each" || failed=1; done
    running=
  fi
done <@HOSTFILE@
for each in $running; do wait "$each" || failed=1; done
if [ "$failed" -ne 0 ]; then
  echo "mpirun is not started: look at the pods of these hosts, and whether they run sshd;" \
    "annotation @ANNOTATION@ says how many seconds to wait, 0 for not at all"
  exit 1
fi
echo "all $asked hosts answer ssh"
