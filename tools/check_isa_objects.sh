#!/bin/sh
# Checks that only the objects of an instruction set use its vector registers, and that these
# objects have no function that the linker may share with others. Usage: tools/check_isa_objects.sh
# BUILD_FOLDER. Prints `N passed, M failed`.
set -u
objdump --version >/dev/null && nm --version >/dev/null ||
  { echo "objdump and nm are needed"; exit 1; }
passed=0
failed=0
check() { # error, lines that show it (empty: no error)
  if [ -n "$2" ]; then
    failed=$((failed + 1))
    printf 'FAILED %s: %s\n' "$1" "$(printf '%s' "$2" | head -n 1)"
  else
    passed=$((passed + 1))
  fi
}
for object in $(find "$1" -name '*.o' \( -path '*pidcomm_core.dir*' \
  -o -path '*pidcomm_line_kernels.dir*' -o -path '*dpuemu.dir*' \)); do
  text=$(objdump -d --no-show-raw-insn "$object") || text=
  [ -n "$text" ] || check "$object" "cannot be disassembled"
  registers=$(printf '%s' "$text" | grep -oE '%[yz]mm[0-9]+' | sort -u)
  case "$object" in
    */isa/avx512* | *line_kernels_avx512*) ;;
    */isa/avx2* | *line_kernels_avx2*)
      check "$object uses zmm" "$(printf '%s' "$registers" | grep zmm)" ;;
    *) check "$object uses ymm or zmm" "$registers" ;;
  esac
  case "$object" in
    */isa/* | *line_kernels_*) check "$object has functions that the linker may share" "$(nm -C "$object" | grep -E ' [WVu] ')" ;;
  esac
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
