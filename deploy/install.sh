#!/bin/sh
# Makes this version the one that systemd runs: docs/operations.md, "systemd" and "Upgrade".
set -eu
umask 022

usage='Usage: deploy/install.sh [--dry-run] [--root DIR]
Links /opt/muster/current to this version, and installs its units, the command muster and, the first time,
/etc/muster.env. Run it again at any time, also to go back to this version.
  --dry-run   print the steps only
  --root DIR  install below DIR instead of /'

refuse() {
  echo "$1" >&2
  exit 1
}

root='' dry=''
while [ $# -gt 0 ]; do
  case $1 in
    --dry-run) dry=yes ;;
    --root) shift && root=${1-} && [ -d "$root" ] || refuse "$usage" ;;
    *) refuse "$usage" ;;
  esac
  shift
done

step() {
  echo "$*"
  [ -n "$dry" ] || "$@"
}

cd "$(dirname "$0")/.."
version=${PWD##*/}
[ "$PWD" = "$root/opt/muster/$version" ] && [ "$version" != current ] ||
  refuse "This version is in $PWD. Move it to $root/opt/muster/VERSION, for example /opt/muster/1.2.0, and try again."
[ -n "$dry$root" ] || [ "$(id -u)" = 0 ] || refuse 'Run this as root.'
[ -n "$root" ] || [ -x /usr/bin/node ] ||
  refuse 'Install Node.js 22.18 or newer first: the units run /usr/bin/node.'
# The units run as another user.
[ -z "$(find "$root/opt/muster" "$PWD" -prune ! -perm -005)" ] ||
  refuse "Only root can read this version. Run \"chmod -R a+rX $root/opt/muster\", and try again."

# npm writes this file last.
[ -e node_modules/.package-lock.json ] || step npm ci --omit=dev
units=$root/etc/systemd/system
step mkdir -p "$units" "$root/usr/local/bin"
# A unit that differs stays as NAME~.
for unit in muster.service muster-backup.service muster-backup.timer; do
  step install -b -C -m 644 "deploy/$unit" "$units/$unit"
done
settings=$root/etc/muster.env
if [ -e "$settings" ]; then
  # The file may have secrets.
  step chmod o= "$settings"
  # Units of earlier versions had settings of their own.
  grep -v '^#' deploy/muster.env | while read -r setting; do
    grep -q "^${setting%%=*}=" "$settings" ||
      echo "Warning: $settings does not set ${setting%%=*}. A new installation has $setting." >&2
  done
else
  step install -m 600 deploy/muster.env "$settings"
fi
step ln -sfn ../../../opt/muster/current/bin/muster.js "$root/usr/local/bin/muster"
# A rename replaces the old link in one step, which ln does not.
step ln -sfn "$version" "$root/opt/muster/next"
step mv -T "$root/opt/muster/next" "$root/opt/muster/current"
[ -n "$root" ] || [ ! -d /run/systemd/system ] || step systemctl daemon-reload

if [ -n "$dry" ]; then
  echo 'Nothing was changed.'
else
  echo "
$version is installed. Next, as root:
  first installation   set BASE_URL and more in $settings, then run: systemctl enable --now muster
  upgrade, roll back   systemctl restart muster"
fi
