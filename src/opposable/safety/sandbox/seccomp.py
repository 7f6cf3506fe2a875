"""The system calls a sandboxed program may not make, as a filter for the kernel.

A classic BPF program as seccomp takes it: eight bytes an instruction (code, jump if true, jump if false, value). New
namespaces would give a program rights of its own inside them; sockets of other families than a program's own reach
what no network namespace holds back (VSOCK: the machine's host); the rest is for administrators and debuggers.
"""

import errno
import platform
import struct

_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NEW_NAMESPACES = 0x7E020080  # CLONE_NEW*: user, pid, net, ipc, uts, cgroup, mount, time
_X32_SYSCALL_BIT = 0x40000000
_CLONE3 = 435
_ALLOWED_SOCKET_FAMILIES = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK
_REFUSED_ON_ALL_MACHINES = (425, 428, 429, 430, 431, 432, 442)  # io_uring_setup and the calls that mount anew

_SYSCALL_NUMBERS = {
    "x86_64": (
        0xC000003E,
        56,
        41,
        (272, 308, 165, 166, 155, 101, 310, 311, 321, 298, 323, 248, 249, 250, 175, 313, 246),
    ),
    "aarch64": (
        0xC00000B7,
        220,
        198,
        (97, 268, 40, 39, 41, 117, 270, 271, 280, 241, 282, 217, 218, 219, 105, 273, 104),
    ),
}
"""Of each machine: its name for the kernel, its number of `clone`, of `socket`, and of unshare, setns, mount, umount2, pivot_root,
ptrace, process_vm_readv, process_vm_writev, bpf, perf_event_open, userfaultfd, add_key, request_key, keyctl,
init_module, finit_module, kexec_load."""


def build_filter() -> bytes | None:
    """The filter for this machine; None where its numbers are not known."""
    if platform.machine() not in _SYSCALL_NUMBERS:
        return None
    architecture, clone, socket, refused = _SYSCALL_NUMBERS[platform.machine()]
    made = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
        (_AT_LEAST, 0, 1, _X32_SYSCALL_BIT),
        (_RETURN, 0, 0, _KILL),
        (_EQUAL, 0, 1, _CLONE3),
        (_RETURN, 0, 0, _ERROR | errno.ENOSYS),  # its flags cannot be seen here; the C library then uses clone
    ]
    for number in (*refused, *_REFUSED_ON_ALL_MACHINES):
        made += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERROR | errno.EPERM)]
    made += _build_socket_rules(socket)
    made += [
        (_EQUAL, 0, 3, clone),
        (_LOAD, 0, 0, 16),
        (_ANY_BIT, 0, 1, _NEW_NAMESPACES),
        (_RETURN, 0, 0, _ERROR | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in made)


def _build_socket_rules(socket_number: int) -> list[tuple[int, int, int, int]]:
    """Of the sockets, those of the families a program needs."""
    count = len(_ALLOWED_SOCKET_FAMILIES)
    return [
        (_EQUAL, 0, count + 3, socket_number),
        (_LOAD, 0, 0, 16),
        *((_EQUAL, count - n, 0, family) for n, family in enumerate(_ALLOWED_SOCKET_FAMILIES)),
        (_RETURN, 0, 0, _ERROR | errno.EAFNOSUPPORT),
        (_RETURN, 0, 0, _ALLOW),
    ]
