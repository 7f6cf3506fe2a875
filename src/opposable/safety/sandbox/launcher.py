"""The first program in a sandbox, which executes the requested one.

It sets resource limits and gives up root. Python runs its source by `-c`, so it imports only the standard library and
reads only its arguments.
"""

import json
import os
import resource
import sys


def main() -> None:
    """Run `launcher USER LIMITS PROGRAM ARGUMENTS…`.

    Root changes to the numeric id USER unless it is 0.
    """
    user, limits = int(sys.argv[1]), json.loads(sys.argv[2])
    for name, value in limits.items():
        hard = value + 1 if name == "RLIMIT_CPU" else value  # the signal of the soft limit identifies it
        resource.setrlimit(getattr(resource, name), (value, hard))
    if user and os.getuid() == 0:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    os.umask(0o077)
    os.execv(sys.argv[3], sys.argv[3:])  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main()
