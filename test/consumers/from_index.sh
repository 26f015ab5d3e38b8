# from_index FOLDER PACKAGE ...: installs Python packages in FOLDER, without what they depend on, once. Fails where
# there is no index.
from_index() {
  local folder=$1
  shift
  if [ "$(cat "$folder/installed" 2> /dev/null)" = "$*" ]; then return; fi
  rm -rf "$folder"
  python3 -m pip install -qq --no-deps --no-compile --root-user-action=ignore --target "$folder" "$@" >&2 || return 1
  echo "$*" > "$folder/installed"
}
