#!/bin/bash
# `systemctl VERB [--now] UNIT` for the units of Muster, on a machine in the folder MACHINE: runs ExecStart= of the unit
# with EnvironmentFile=, StateDirectory= and WorkingDirectory=. It knows nothing of the sandbox.
set -eu
unit=${!#}
[[ $unit == *.timer ]] && exec grep --quiet OnCalendar "$MACHINE/etc/systemd/system/$unit"
pid_file=$MACHINE/$unit.pid

setting() {
  sed --quiet "s#\(/etc/\|/opt/\|/var/\)#$MACHINE\1#g; s#/usr/bin/node#$NODE#; s/^$1=//p" \
    "$MACHINE/etc/systemd/system/$unit.service"
}

stop() {
  local pid
  pid=$(cat "$pid_file")
  kill -TERM "$pid"
  # A zombie has ended, too.
  while [ -e "/proc/$pid" ] && ! grep --quiet ') Z ' "/proc/$pid/stat"; do sleep 0.1; done
}

start() {
  local folder
  for folder in $(setting StateDirectory); do mkdir --parents --mode=700 "$MACHINE/var/lib/$folder"; done
  # shellcheck disable=SC2046 # Settings and arguments without blanks.
  (cd "$(setting WorkingDirectory)" &&
    exec env --ignore-environment PATH="$PATH" $(grep --invert-match '^#' "$(setting EnvironmentFile)") \
      $(setting ExecStart)) </dev/null >>"$MACHINE/$unit.log" 2>&1 &
  echo $! >"$pid_file"
  [[ $(setting Type) != oneshot ]] || wait $!
}

case $1 in
  start | enable) start ;;
  stop) stop ;;
  restart) stop && start ;;
esac
