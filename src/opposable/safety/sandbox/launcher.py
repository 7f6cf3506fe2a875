"""The first program inside a sandbox: sets the limits, gives up every right, and becomes the program asked for.

Its text is handed to Python by `-c`, so it stands alone: it imports nothing of ours and reads nothing but its arguments.
"""

import json
import os
import resource
import sys


def main() -> None:
    """`launcher USER LIMITS PROGRAM ARGUMENTS…`: USER a numeric id to become where we are root, 0 to stay."""
    user, limits = int(sys.argv[1]), json.loads(sys.argv[2])
    for name, value in limits.items():
        hard = value + 1 if name == "RLIMIT_CPU" else value  # the soft limit's signal says which limit it was
        resource.setrlimit(getattr(resource, name), (value, hard))
    if user and os.getuid() == 0:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    os.umask(0o077)
    os.execv(sys.argv[3], sys.argv[3:])  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main()
