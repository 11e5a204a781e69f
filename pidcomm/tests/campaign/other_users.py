"""Place files of another user where pools, the compiler and temporary folders have theirs: commands
must work or name the user, and must not use or remove these files. Only root can run this attack,
and in some containers not even root.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

from attack import Attack, Scene, skip

from dpuemu import tools

SOURCE = Path(__file__).resolve().parents[2] / "examples" / "pe" / "matrix_vector.c"
POOL = (
    "import sys; from pidcomm.pool import Pool;"
    " Pool(**{sys.argv[1]: sys.argv[2]}, host=0, hosts=1, bytes=1 << 20, switch={switch},"
    " timeout=60).close()"
)


def give(path: Path, user: int, content: bytes = b"") -> Path:
    """Write a file of another user."""
    path.write_bytes(content)
    os.chown(path, user, user)
    path.chmod(0o666)
    return path


def of_pool(scene: Scene, choices: random.Random, user: int) -> str:
    """Open a pool whose file or object belongs to another user."""
    name = f"foreign{os.getpid()}"
    program = POOL.replace("{switch}", str(choices.random() < 0.3))
    if choices.random() < 0.5:
        file = give(scene.folder / "pool", user, bytes(choices.choice([0, 4096, 1 << 20])))
        before = file.read_bytes()
        status, text = scene.run([sys.executable, "-c", program, "path", str(file)], {})
        is_named = f"a file of the user {user}" in text
        is_right = status == 1 and is_named and file.read_bytes() == before
        return "" if is_right else f"a pool in a file of user {user} has status {status}: {text}"
    numbers = f"{choices.randint(1, 10**6)}-{choices.randint(1, 99)}"
    file = Path(f"/dev/shm/pidcomm-pool-{os.geteuid()}-{name}-{numbers}")
    give(file, user, bytes(choices.choice([0, 100, 1 << 20])))
    status, text = scene.run([sys.executable, "-c", program, "name", name], {})
    is_there = file.exists()
    file.unlink(missing_ok=True)
    if status == 0 and is_there:
        return ""
    return f"a pool beside an object of user {user} has status {status}, object {is_there}: {text}"


def of_cache(scene: Scene, choices: random.Random, user: int) -> str:
    """Compile with a cache whose folder and entries belong to another user."""
    cache, program = scene.folder / "cache", scene.folder / "program"
    compiler = [sys.executable, str(tools.sdk_root() / "bin" / tools.COMPILER)]
    command = [*compiler, "-O2", "-DNR_TASKLETS=16", "-o", str(program), str(SOURCE)]
    variables = {"DPUEMU_CACHE": str(cache)}
    scene.run(command, variables)
    right = program.read_bytes() if program.exists() else b""
    entries = list(cache.glob("runtime-*"))
    for entry in entries:
        os.chown(entry, user, user)
    if choices.random() < 0.5:
        os.chown(cache, user, user)
    status, text = scene.run(command, variables)
    if status != 0 or not entries or program.read_bytes() != right:
        return f"with {len(entries)} entries of user {user} the status is {status}: {text[-300:]}"
    users = {entry.stat().st_uid for entry in cache.glob("runtime-*")}
    return "" if users == {os.geteuid()} else f"an entry of users {users} is used"


def of_temporary(scene: Scene, _: random.Random, user: int) -> str:
    """Run a command beside temporary folders of another user, which no process has locked."""
    folder = scene.folder / "dpuemu-tmp-abcdefgh"
    folder.mkdir()
    give(folder / "file", user)
    os.chown(folder, user, user)
    os.utime(folder, (0, 0))
    dpuemu = str(Path(sys.executable).with_name("dpuemu"))
    status, text = scene.run([dpuemu, "run", "--", "true"], {})
    if status == 0 and (folder / "file").exists():
        return ""
    return f"beside a folder of user {user} the status is {status}: {text[-300:]}"


def main() -> None:
    """Run the ways in turn."""
    attack = Attack()
    scene = Scene(attack)
    try:
        give(scene.folder / "file", 60000)
    except OSError:
        scene.close()
        skip("this process cannot give files to another user")
    scene.leftovers()
    ways = (of_pool, of_temporary, of_pool, of_cache)
    for number in attack.numbers():
        choices = attack.random(number)
        sentence = ways[number % len(ways)](scene, choices, choices.randint(1000, 60000))
        if sentence:
            attack.find(sentence, number=number)
        scene.leftovers()
    scene.close()
    attack.finish()


if __name__ == "__main__":
    main()
